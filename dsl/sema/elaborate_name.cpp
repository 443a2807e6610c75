// Names: locals, what a compressor declares, built-in names, declarations of files; and `a.b`.
#include <algorithm>

#include "dsl/diag/render.h"
#include "dsl/sema/elaborator.h"
#include "runtime/core/params/param_value.h"

namespace cinch::sema {

using dsl::DiagKind;

const Symbol* Elaborator::find_symbol(std::string_view name) const {
  for (std::size_t i = env_->scopes.size(); i-- > 0;) {
    const auto at = env_->scopes[i].find(name);
    if (at != env_->scopes[i].end()) return &at->second;
  }
  if (env_->instance != nullptr) {
    const auto at = env_->instance->names.find(name);
    if (at != env_->instance->names.end()) return &at->second;
  }
  return nullptr;
}

void Elaborator::unknown_name(const ast::Name& name) {
  // Of many mistakes the later ones are not shown, and a search takes the longer the more names
  // there are.
  if (reporter_.num_errors() >= dsl::kMostShown) {
    reporter_.report<DiagKind::UnknownName>(name.span, name.text);
    return;
  }
  std::vector<std::string_view> seen;
  for (const Scope& scope : env_->scopes) {
    for (const auto& [known, symbol] : scope) seen.push_back(known);
  }
  if (env_->instance != nullptr) {
    for (const auto& [known, symbol] : env_->instance->names) seen.push_back(known);
  }
  for (std::string_view known : visible_names(*env_->unit)) seen.push_back(known);
  for (std::string_view known : {"world", "worker", "step"}) seen.push_back(known);
  auto& diag = reporter_.report<DiagKind::UnknownName>(name.span, name.text);
  diag.suggest(name.span, std::string(dsl::nearest_name(name.text, seen)));
  if (name.text == "r" || name.text == "c") {
    diag.note("`r` and `c` are the sizes of a matrix gradient: `g: [f32; r, c]`");
  }
}

Value Elaborator::builtin_name(const ast::Name& name) {
  const std::string& text = name.text;
  const Instance* instance = env_->instance;
  if (in_constant_) {
    reporter_.report<DiagKind::NotConstant>(name.span);
    return error(name.span);
  }
  if (text == "n") return host(instance == nullptr ? pool().n() : instance->elements, name.span);
  if (text == "world") return host(pool().world(), name.span);
  if (text == "step") return host(pool().step(), name.span);
  if (text == "worker") {
    if (body_ == BodyKind::Decode) {
      reporter_.report<DiagKind::NotInDecode>(name.span, "`worker`");
      return error(name.span);
    }
    if (encodes_in_finish_) {
      reporter_.report<DiagKind::NotInFinish>(name.span, "an encode that sees `worker`");
      return error(name.span);
    }
    if (in_host_ || body_ == BodyKind::StateInit) {
      reporter_.report<DiagKind::NotKnownOnHost>(name.span, "a size")
          .note("`worker` differs from rank to rank");
      return error(name.span);
    }
    return host(pool().worker(), name.span);
  }
  if (instance == nullptr || !instance->is_matrix) {
    unknown_name(name);
    return error(name.span);
  }
  return host(text == "r" ? pool().rows() : pool().cols(), name.span);
}

Value Elaborator::symbol_value(const Symbol& symbol, const ast::Name& name) {
  switch (symbol.kind) {
    case SymbolKind::Value: {
      if (symbol.is_ambiguous) return ambiguous_word(name);
      if (in_leaves_ && symbol.leaf) return host(symbol.leaf, name.span);
      if (in_host_ && symbol.given) return host(symbol.given, name.span);
      Value value = symbol.value;
      value.span = name.span;
      return value;
    }
    case SymbolKind::Variable: {
      Value value = read_var(symbol.value.var, name.span);
      const auto known = variable_facts_.find(symbol.value.var.index());
      if (known != variable_facts_.end()) value.facts = known->second;
      return value;
    }
    case SymbolKind::State: {
      if (body_ == BodyKind::Decode) {
        reporter_.report<DiagKind::NotInDecode>(name.span, "the state `" + name.text + "`")
            .note(symbol.span, "the state");
        return error(name.span);
      }
      if (body_ == BodyKind::StateInit) {
        reporter_.report<DiagKind::StateInit>(name.span, "another state");
        return error(name.span);
      }
      Expr read{ExprKind::State, out_.info.states[symbol.index].type, name.span};
      read.index = symbol.index;
      const Value value = typed(std::move(read));
      read_versions_[value.expr.index()] = {state_versions_[symbol.index], epoch_};
      return value;
    }
    case SymbolKind::Param: {
      const DType dtype = symbol.value.type.dtype;
      if (in_constant_) {
        reporter_.report<DiagKind::NotConstant>(name.span);
        return error(name.span);
      }
      if (body_ == BodyKind::StateInit) {
        reporter_.report<DiagKind::StateInit>(name.span, "a run-time parameter");
        return error(name.span);
      }
      if (symbol.leaf && !in_host_) return coerce(host(symbol.leaf, name.span), dtype);
      if (in_host_) {
        const HostType type = host_type_of(dtype);
        const HostExprId leaf = symbol.leaf ? symbol.leaf : pool().param(symbol.index, type);
        return host(type == HostType::Bool ? leaf : pool().cast(leaf, HostType::F64), name.span);
      }
      Expr read{ExprKind::Param, scalar(dtype), name.span};
      read.index = symbol.index;
      return typed(std::move(read));
    }
    case SymbolKind::Inner:
      break;
  }
  reporter_.report<DiagKind::NotAValue>(name.span, name.text, "a wrapped compressor");
  return error(name.span);
}

Value Elaborator::name_expr(const ast::Name& name) {
  if (const Symbol* symbol = find_symbol(name.text)) return symbol_value(*symbol, name);
  if (is_builtin_name(name.text)) return builtin_name(name);
  const std::size_t errors = reporter_.num_errors();
  if (const auto decl = find_decl(*env_->unit, name.text, name.span, reporter_)) {
    return decl_value(*decl, name);
  }
  if (reporter_.num_errors() != errors) return error(name.span);
  if (find_builtin(name.text) || find_scalar_op(name.text)) {
    reporter_.report<DiagKind::NotAValue>(name.span, name.text, "an operator");
    return error(name.span);
  }
  unknown_name(name);
  return error(name.span);
}

Value Elaborator::decl_value(const DeclRef& decl, const ast::Name& name) {
  if (const auto* node = std::get_if<ast::Const>(&(*decl).node)) {
    const Use use(*this, name.span);
    Value value = const_value(decl, *node);
    value.span = name.span;
    return value;
  }
  reporter_.report<DiagKind::NotAValue>(name.span, name.text, decl_noun(*decl));
  return error(name.span);
}

// A constant of numbers is computed once. One of operators means its expression, elaborated where
// it is used: passes join what is computed twice.
Value Elaborator::const_value(const DeclRef& decl, const ast::Const& node) {
  const std::pair key(&node, in_claim_);
  const auto known = module_.known_consts.find(key);
  if (known != module_.known_consts.end()) return known_const(known->second, node.name.span);
  const int outer_deepest = std::exchange(deepest_, levels_);
  const Value value = elaborate_const_value(decl, node);
  if (const auto numbers = as_known_const(value)) {
    module_.known_consts.emplace(key, *numbers).first->second.levels = deepest_ - levels_;
  }
  deepest_ = std::max(deepest_, outer_deepest);
  return value;
}

// As deep as where it was computed, so that the order of uses does not matter.
Value Elaborator::known_const(const KnownConst& known, Span span) {
  deepest_ = std::max(deepest_, levels_ + known.levels);
  if (!holds_levels(known.levels, span)) return error(span);
  if (!known.is_table) {
    Value value = constant(known.numbers.front(), span);
    value.declared = known.declared;
    value.is_hex = known.is_hex;
    return value;
  }
  Value table;
  table.is_hex = known.is_hex;
  if (known.quotient != nullptr) {
    table.quotient = std::make_shared<const Value>(known_const(*known.quotient, span));
  }
  table.kind = ValueKind::Table;
  table.span = span;
  table.table_cols = known.table_cols;
  for (const Constant& number : known.numbers) {
    add_element(table, pool().constant(number.value), number.is_big);
  }
  return table;
}

std::optional<KnownConst> Elaborator::as_known_const(const Value& value) {
  KnownConst known;
  known.is_table = value.kind == ValueKind::Table;
  known.table_cols = value.table_cols;
  known.declared = value.declared;
  known.is_hex = value.is_hex;
  if (known.is_table && value.quotient != nullptr) {
    const auto quotient = as_known_const(*value.quotient);
    if (quotient) known.quotient = std::make_shared<const KnownConst>(*quotient);
  }
  if (value.is_host() && pool().is_const(value.host)) {
    known.numbers.push_back({pool().const_value(value.host), value.is_big, {}});
    if (value.quotient != nullptr) {
      known.numbers.back().quotient = pool().const_value(value.quotient->host).to_double();
    }
  } else if (!known.is_table) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < value.table.size(); ++i) {
    known.numbers.push_back({pool().const_value(value.table[i]), value.big_elements[i], {}});
  }
  return known;
}

Value Elaborator::elaborate_const_value(const DeclRef& decl, const ast::Const& node) {
  if (std::find(open_consts_.begin(), open_consts_.end(), &node) != open_consts_.end()) {
    reporter_.report<DiagKind::RecursiveComposition>(node.name.span, node.name.text);
    return error(node.name.span);
  }
  open_consts_.push_back(&node);
  Environment env{decl.unit, nullptr, {Scope{}}};
  Value value;
  const bool outer_constant = std::exchange(in_constant_, true);
  const bool outer_host = std::exchange(in_host_, false);
  with_environment(env, [&] { value = expr(node.value); });
  in_constant_ = outer_constant;
  in_host_ = outer_host;
  open_consts_.pop_back();
  return value;
}

void Elaborator::with_environment(Environment& env, const std::function<void()>& body) {
  Environment* const outer = std::exchange(env_, &env);
  body();
  env_ = outer;
}

Value Elaborator::field_expr(const ast::FieldRef& node, Span span) {
  const ast::Expr& base = tree()[node.base];
  if (const auto* name = std::get_if<ast::NameRef>(&base.node)) {
    const Symbol* symbol = find_symbol(name->name.text);
    if (symbol == nullptr && is_qualifier(*env_->unit, name->name.text)) {
      if (const auto decl = find_qualified(*env_->unit, name->name.text, node.field.text)) {
        return decl_value(*decl, node.field);
      }
      reporter_.report<DiagKind::UnknownName>(node.field.span,
                                              name->name.text + "." + node.field.text);
      return error(span);
    }
    if (symbol != nullptr && symbol->kind == SymbolKind::Inner) {
      if (in_set_) return inner_param_value(node);
      reporter_.report<DiagKind::NotAValue>(span, name->name.text + "." + node.field.text,
                                            "a member of a wrapped compressor");
      return error(span);
    }
  }
  if (in_set_) return inner_param_value(node);
  const Value value = expr(node.base);
  if (value.is_error()) return error(span);
  if (value.kind != ValueKind::Payload) {
    reporter_.report<DiagKind::BadType>(value.span, "a payload before `." + node.field.text + "`",
                                        describe(value));
    return error(span);
  }
  return payload_field(value, node.field, span);
}

Value Elaborator::payload_field(const Value& payload, const ast::Name& field, Span span) {
  for (const WirePart& part : payload.owner->parts) {
    if (part.name != field.text) continue;
    Value view = payload;
    view.span = span;
    view.owner = part.inner;
    view.first_field += part.first_field;
    view.first_count += part.first_count;
    return view;
  }
  const std::vector<WireField>& fields = payload.owner->fields;
  const auto at = std::find_if(fields.begin(), fields.end(),
                               [&](const WireField& f) { return f.name == field.text; });
  if (at == fields.end()) {
    if (payload.owner->spec->is_stand_in) return error(span);
    std::vector<std::string_view> names;
    names.reserve(fields.size());
    for (const WireField& f : fields) names.push_back(f.name);
    reporter_.report<DiagKind::UnknownField>(field.span, field.text)
        .suggest(field.span, std::string(dsl::nearest_name(field.text, names)));
    return error(span);
  }
  return payload_field_at(payload, static_cast<std::uint32_t>(at - fields.begin()), span);
}

Value Elaborator::payload_field_at(const Value& payload, std::uint32_t index, Span span) {
  index += payload.first_field;
  const std::vector<Type>& types = out_.vars[payload.var.index()].field_types;
  if (index >= types.size()) return error(span);
  Expr read{ExprKind::Field, types[index], span};
  read.var = payload.var;
  read.index = index;
  Value value = typed(std::move(read));
  const auto facts = payload_facts_.find(payload.var.index());
  if (facts != payload_facts_.end() && index < facts->second.size()) {
    value.facts = facts->second[index];
  }
  return with_first_count(value, span);
}

}  // namespace cinch::sema
