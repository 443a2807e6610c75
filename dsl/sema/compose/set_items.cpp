// Values that wrappers set, and their checks before launch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsl/sema/compose/items.h"
#include "dsl/sema/composition.h"
#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/params.h"

namespace cinch::sema {
using dsl::DiagKind;

// Finds the compressor's own parameter, else one of a compressor that it wraps, as compositions do.
std::optional<InnerParam> Items::search_param(Instance& inner, std::string_view name) {
  const ast::Module& tree = inner.tree();
  for (ast::ParamId id : tree.list(inner.spec->node->params)) {
    const bool is_slot = inner.inner.contains(tree[id].name.text);
    if (!is_slot && tree[id].name.text == name) return InnerParam{&inner, &tree[id]};
  }
  for (const auto& [slot, wrapped] : inner.inner) {
    if (const auto found = search_param(*wrapped, name)) return found;
  }
  return std::nullopt;
}

// The wrapped compressor to which all names but the last lead.
Instance* Items::find_inner(Instance& from, std::span<const ast::Name> path) {
  Instance* inner = &from;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const auto at = inner->inner.find(path[i].text);
    if (at == inner->inner.end()) {
      if (!inner->spec->is_stand_in) {
        reporter_.report<DiagKind::NotACompressor>(path[i].span, path[i].text);
      }
      return nullptr;
    }
    inner = at->second;
  }
  return inner;
}

namespace {

bool has_stand_in(const Spec& spec) {
  return spec.is_stand_in || std::any_of(spec.inner.begin(), spec.inner.end(), [](const auto& e) {
           return e.second != nullptr && has_stand_in(*e.second);
         });
}

// The names of `inner.a.b` but the last, outermost first. Returns nothing for any other expression.
std::vector<ast::Name> path_of(const ast::Module& tree, const ast::FieldRef& node) {
  const ast::Expr& base = tree[node.base];
  std::vector<ast::Name> path;
  if (const auto* name = std::get_if<ast::NameRef>(&base.node)) path = {name->name};
  if (const auto* field = std::get_if<ast::FieldRef>(&base.node)) path = path_of(tree, *field);
  if (!path.empty()) path.push_back(node.field);
  return path;
}

}  // namespace

std::optional<InnerParam> Items::find_inner_param(Instance& from, std::span<const ast::Name> path) {
  Instance* inner = find_inner(from, path);
  if (inner == nullptr) return std::nullopt;
  const ast::Name& name = path.back();
  const auto found = search_param(*inner, name.text);
  if (!found && !has_stand_in(*inner->spec)) {
    std::vector<std::string_view> names;
    const ast::Module& tree = inner->tree();
    for (ast::ParamId id : tree.list(inner->spec->node->params)) {
      names.push_back(tree[id].name.text);
    }
    const std::string_view near = dsl::nearest_name(name.text, names);
    auto& diag = reporter_.report<DiagKind::UnknownParameter>(name.span, inner->name(),
                                                              "`" + name.text + "`");
    diag.suggest(name.span, std::string(near));
    if (near.empty()) diag.note(names_text("its parameters:", names));
  }
  return found;
}

Value Items::inner_param_value(const ast::FieldRef& node) {
  const std::vector<ast::Name> path = path_of(tree(), node);
  const Span span = node.field.span;
  if (path.empty())
    return mistake<DiagKind::BadType>(span, "a parameter of a wrapped compressor", "a field");
  const std::size_t errors = reporter_.num_errors();
  const auto found = find_inner_param(*env_->instance, path);
  if (found)
    return all_.exprs.symbol_value(found->owner->names.at(found->param->name.text), node.field);
  if (reporter_.num_errors() != errors) return error_value(span);
  // A wrapper that is checked alone: this is a parameter of an unknown compressor.
  return host_value(sizes_.opaque_number(HostType::F64), span);
}

// The words of the parameter hide other names: `set inner.fit = if step > 9 { gamma } else { … }`.
Value Items::given_value(const ast::SetItem& node, const std::optional<InnerParam>& target) {
  const ModeScope scope(mode_);
  mode_.in_host = true;
  mode_.in_set = true;
  Scope& words = env_->scopes.emplace_back();
  const auto* type =
      target && target->param->type
          ? std::get_if<ast::EnumType>(&target->owner->tree()[target->param->type].node)
          : nullptr;
  for (std::size_t i = 0; type != nullptr && i < type->names.size(); ++i) {
    Symbol& word = words[type->names[i].text];
    word.value = host_value(pool().const_int(static_cast<std::int64_t>(i)), node.path.back().span);
    word.is_word = true;
  }
  const Value value = all_.exprs.expr(node.value);
  env_->scopes.pop_back();
  return value;
}

void Items::elaborate_set(Instance& instance, const ast::SetItem& node) {
  const std::string& last = node.path.back().text;
  bool is_param = last == "r" || last == "step";
  if (is_param) {
    Instance* inner = find_inner(instance, node.path);
    is_param = inner != nullptr && search_param(*inner, last).has_value();
  }
  const bool is_size = is_builtin_name(last) && !is_param;
  const std::size_t before = reporter_.num_errors();
  const auto target = is_size ? std::nullopt : find_inner_param(instance, node.path);
  const bool is_open = !is_size && !target && reporter_.num_errors() == before;
  if (is_open && all_.params.may_be_word(node.value)) return;
  const std::size_t errors = reporter_.num_errors();
  const auto word =
      target ? word_given(target->owner->tree(), *target->param, tree(), node.value) : std::nullopt;
  const Value value =
      word ? all_.numbers.constant(*word, tree()[node.value].span) : given_value(node, target);
  const bool is_number = value.is_host() && !value.is_big;
  if (!is_number && reporter_.num_errors() == errors) {
    reporter_.report<DiagKind::NotKnownOnHost>(value.span, "the value of a parameter");
  }
  if (is_size && is_number) return set_elements(instance, node, value);
  if (!target || !is_number) return;
  const ast::Name& name = node.path.back();
  if (target->param->is_const) {
    reporter_.report<DiagKind::SetOfConstant>(name.span, name.text, target->owner->name())
        .note(target->param->name.span, "declared here");
    return;
  }
  Symbol& symbol = target->owner->names.at(name.text);
  const auto [first, is_new] = set_spans_.try_emplace({&instance, &symbol}, name.span);
  if (!is_new) {
    reporter_.report<DiagKind::DuplicateName>(name.span, name.text)
        .note(first->second, "first set here");
    return;
  }
  Environment env = environment_of(*target->owner);
  std::optional<ParamType> type;
  all_.exprs.with_environment(env, [&] { type = all_.params.declared_type(*target->param); });
  if (!type) return;
  if ((pool().type(value.host) == HostType::Bool) != is_bool(type->dtype)) {
    reporter_.report<DiagKind::BadType>(value.span, dtype_name(type->dtype), text_.describe(value));
    return;
  }
  const HostExprId number = is_float(type->dtype) ? as_quotient(value).host : value.host;
  const HostExprId made = pool().cast(number, host_type_of(type->dtype));
  if (!made) return;
  require_set_value(node, *type, made);
  symbol.kind = SymbolKind::Param;
  symbol.value = Value();
  symbol.value.type = scalar_type(type->dtype);
  symbol.leaf = made;
}

// `set inner.n = e`: the wrapped compressor works on this many elements, as if they were a tensor
// of their own.
void Items::set_elements(Instance& instance, const ast::SetItem& node, const Value& value) {
  Instance* inner = find_inner(instance, node.path);
  if (inner == nullptr) return;
  const Span span = node.path.back().span;
  if (inner->is_matrix || pool().type(value.host) == HostType::Bool) {
    reporter_.report<DiagKind::BadType>(
        inner->is_matrix ? span : value.span,
        inner->is_matrix ? "a compressor of vectors" : "a number of elements",
        inner->is_matrix ? "one of matrices" : "bool");
    return;
  }
  const std::string& name = node.path.back().text;
  if (name == "r") return set_rows(*inner, instance, pool().cast(value.host, HostType::Int), span);
  if (name != "n") {
    reporter_.report<DiagKind::UnknownParameter>(span, inner->name(), "`" + name + "`");
    return;
  }
  if (inner->has_set_elements) {
    reporter_.report<DiagKind::DuplicateName>(span, "n");
    return;
  }
  inner->has_set_elements = true;
  inner->elements = prover_.canonical(pool().cast(value.host, HostType::Int));
  inner->elements_span = span;
}

void Items::set_rows(Instance& inner, const Instance& outer, HostExprId rows, Span span) {
  if (inner.rows) {
    reporter_.report<DiagKind::DuplicateName>(span, "r");
    return;
  }
  if (outer.rows) {
    not_by_rows("`set inner.r`", span);
    return;
  }
  inner.rows = prover_.canonical(rows);
  inner.rows_span = span;
  if (prover_.proves_nonnegative(rows)) return;
  set_checks_.push_back({pool().make(HostOp::Ge, rows, pool().const_int(0)),
                         "`" + inner.prefix + "r` is not negative", span});
}

// A part has at most as many elements as the whole, except that a last row may be filled up.
void Items::check_set_elements(const Instance& instance) {
  for (const auto& [slot, inner] : instance.inner) {
    if (!inner->has_set_elements) continue;
    const HostExprId zero = pool().const_int(0), least = inner->elements;
    HostExprId holds = pool().make(HostOp::Ge, least, zero);
    bool is_proved = prover_.proves_nonnegative(least);
    if (!inner->rows) {
      is_proved = is_proved && prover_.proves_less_equal(least, instance.elements);
      holds = pool().make(HostOp::And, holds, pool().make(HostOp::Le, least, instance.elements));
    }
    if (is_proved) continue;
    const std::string most = inner->rows ? "not negative" : "between 0 and n";
    set_checks_.push_back({holds, "`" + inner->prefix + "n` is " + most, inner->elements_span});
  }
}

// Adds a check before launch: the value is in the parameter's range, and an integer is in the range
// of its type.
void Items::require_set_value(const ast::SetItem& node, const ParamType& target, HostExprId value) {
  const DType dtype = target.dtype;
  if (is_bool(dtype)) return;
  rt::ParamRange wanted = target.range.value_or(rt::ParamRange{});
  if (is_int(dtype)) {
    const bool is_wide = dtype.bits >= 63;
    const double most = is_wide ? 9.0e18 : std::ldexp(1.0, dtype.bits - is_signed_int(dtype)) - 1;
    const double least = is_signed_int(dtype) ? -most : 0.0;
    if (!wanted.low || *wanted.low < least) wanted.low = least;
    if (!wanted.high || *wanted.high > most) wanted.high = most;
  }
  const HostType type = pool().type(value);
  const auto number = [&](double x) { return pool().cast(pool().const_f64(x), type); };
  HostExprId holds = pool().const_bool(true);
  const auto add = [&](HostExprId held, HostOp op, double bound) {
    holds = pool().make(HostOp::And, holds, pool().make(op, held, number(bound)));
  };
  if (wanted.low) add(value, wanted.low_open ? HostOp::Gt : HostOp::Ge, *wanted.low);
  if (wanted.high) add(value, wanted.high_open ? HostOp::Lt : HostOp::Le, *wanted.high);
  // Rounding to the parameter's type may move a value onto an excluded end of the range.
  if (is_float(dtype) && dtype != kF64) {
    const HostExprId held = pool().cast(pool().cast(value, HostType::F32), type);
    if (wanted.low && wanted.low_open) add(held, HostOp::Gt, *wanted.low);
    if (wanted.high && wanted.high_open) add(held, HostOp::Lt, *wanted.high);
  }
  std::string path;
  for (const ast::Name& name : node.path) path += (path.empty() ? "" : ".") + name.text;
  set_checks_.push_back(
      {holds, "`" + path + "` is in " + rt::range_text(wanted), node.path.back().span});
}

void Items::check_set_values() {
  for (const SetCheck& check : set_checks_) build_.require(check.holds, check.text, check.span);
}

// Declares words, and finds the word that a comparison with a parameter means.

namespace {

const ast::Name* name_in(const ast::Module& tree, ast::ExprId id) {
  const ast::Expr& node = tree[id];
  if (const auto* paren = std::get_if<ast::Paren>(&node.node)) return name_in(tree, paren->inner);
  const auto* name = std::get_if<ast::NameRef>(&node.node);
  return name == nullptr ? nullptr : &name->name;
}

}  // namespace

// The word is visible wherever the compressor's names are. Its value is its number.
void Parameters::declare_word(Instance& instance, const ast::Param& param, std::size_t i) {
  const auto& words = std::get<ast::EnumType>(tree()[param.type].node).names;
  const ast::Name& word = words[i];
  const auto before = words.begin() + static_cast<std::ptrdiff_t>(i);
  const auto is_same = [&](const ast::Name& other) { return other.text == word.text; };
  if (const auto first = std::find_if(words.begin(), before, is_same); first != before) {
    reporter_.report<DiagKind::DuplicateName>(word.span, word.text)
        .note(first->span, "first declared here");
    return;
  }
  const auto known = instance.names.find(word.text);
  const HostExprId number = pool().const_int(static_cast<std::int64_t>(i));
  if (known != instance.names.end() && known->second.is_word) {
    known->second.is_ambiguous |= known->second.value.host != number;
    return;
  }
  all_.items.declare_item(instance, word,
                          Symbol{.value = host_value(number, word.span),
                                 .span = word.span,
                                 .noun = "a word",
                                 .is_word = true});
}

// The parameter with words that an expression names, or nullptr.
const ast::Param* Parameters::words_param(ast::ExprId id) const {
  const Instance* instance = env_->instance;
  const ast::Name* name = id ? name_in(tree(), id) : nullptr;
  if (instance == nullptr || name == nullptr) return nullptr;
  const auto known = instance->names.find(name->text);
  if (known == instance->names.end() || all_.exprs.find_symbol(name->text) != &known->second)
    return nullptr;
  for (ast::ParamId param : instance->tree().list(instance->spec->node->params)) {
    const ast::Param& declared = instance->tree()[param];
    const bool has_words = declared.type && std::holds_alternative<ast::EnumType>(
                                                instance->tree()[declared.type].node);
    if (has_words && declared.name.text == name->text) return &declared;
  }
  return nullptr;
}

Value Parameters::compared(ast::ExprId id, ast::ExprId other) {
  const ast::Param* param = words_param(other);
  const ast::Name* name = param != nullptr && id ? name_in(tree(), id) : nullptr;
  const Symbol* symbol = name == nullptr ? nullptr : all_.exprs.find_symbol(name->text);
  if (symbol == nullptr || !symbol->is_word) return all_.exprs.expr(id);
  const auto& words = std::get<ast::EnumType>(tree()[param->type].node).names;
  const auto is_it = [&](const ast::Name& word) { return word.text == name->text; };
  const auto at = std::ranges::find_if(words, is_it);
  if (at != words.end()) return host_value(pool().const_int(at - words.begin()), name->span);
  const auto type = FOUND(declared_type(*param));
  return mistake<DiagKind::ParameterOutOfRange>(
      name->span, param->name.text, "`" + name->text + "`", Parameters::takes_text(type));
}

bool Parameters::may_be_word(ast::ExprId id) {
  if (!id) return false;
  if (const auto* choice = std::get_if<ast::If>(&tree()[id].node)) {
    return may_be_word(tree()[choice->then].value) || may_be_word(choice->otherwise);
  }
  if (const auto* block = std::get_if<ast::BlockExpr>(&tree()[id].node)) {
    return may_be_word(tree()[block->block].value);
  }
  const ast::Name* name = name_in(tree(), id);
  if (name == nullptr || all_.exprs.find_symbol(name->text) != nullptr ||
      is_builtin_name(name->text)) {
    return false;
  }
  return !find_decl(*env_->unit, name->text, name->span, reporter_);
}

Value Parameters::ambiguous_word(const ast::Name& name) {
  std::vector<std::string> owners;
  const ast::Module& tree = env_->instance->tree();
  for (ast::ParamId param : tree.list(env_->instance->spec->node->params)) {
    const ast::TypeId type = tree[param].type;
    const auto* words = type ? std::get_if<ast::EnumType>(&tree[type].node) : nullptr;
    if (words == nullptr) continue;
    const auto is_meant = [&](const ast::Name& word) { return word.text == name.text; };
    if (std::ranges::any_of(words->names, is_meant))
      owners.push_back("`" + tree[param].name.text + "`");
  }
  return mistake<DiagKind::AmbiguousWord>(name.span, name.text,
                                          fmt::format("{}", fmt::join(owners, ", ")));
}

}  // namespace cinch::sema
