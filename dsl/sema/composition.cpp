// Compositions such as `error_feedback(topk(ratio: 0.01))` as trees of compressors with fixed
// parameters, and the names of open parameters in the result.
#include "dsl/sema/composition.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/mapped.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

constexpr int kMaxWrapping = 64;
// The most compressors of one composition. Draws have 14 bits for the number of a compressor's
// instance.
constexpr std::size_t kMostCompressors = 4096;

bool is_compressor_param(const FileUnit& unit, const ast::Param& param) {
  return param.type.has_value() &&
         std::holds_alternative<ast::CompressorType>(unit.tree[param.type].node);
}

class SpecMaker {
 public:
  SpecMaker(ModuleData& module, Reporter& reporter, const ast::Name& name,
            const ClauseScope* clause = nullptr)
      : module_(module), reporter_(reporter), name_(name), clause_(clause) {}

  std::unique_ptr<Spec> of_decl(const DeclRef& decl, const ast::Name& name) {
    if (const auto* node = std::get_if<ast::Compressor>(&(*decl).node)) {
      if (!may_go_on()) return nullptr;
      auto spec = std::make_unique<Spec>();
      spec->decl = decl;
      spec->node = node;
      spec->is_of_clause = clause_ != nullptr;
      return spec;
    }
    const auto* composition = std::get_if<ast::Composition>(&(*decl).node);
    if (composition == nullptr) {
      reporter_.report<DiagKind::NotACompressor>(name.span, name.text)
          .note(declared_name(*decl)->span, "it is " + decl_noun(*decl));
      return nullptr;
    }
    if (std::find(open_.begin(), open_.end(), decl) != open_.end()) {
      reporter_.report<DiagKind::RecursiveComposition>(composition->name.span,
                                                       composition->name.text);
      return nullptr;
    }
    if (open_.size() >= kMaxWrapping) {
      reporter_.work().is_over = true;
      reporter_.report<DiagKind::TooMany>(name_.span, std::to_string(kMaxWrapping),
                                          "nested compositions");
      return nullptr;
    }
    open_.push_back(decl);
    const std::size_t errors = reporter_.num_errors();
    auto spec = of_expr(*decl.unit, composition->value);
    open_.pop_back();
    if (spec != nullptr && reporter_.num_errors() == errors) {
      // Every parameter of a composition must be passed on.
      for (ast::ParamId id : decl.unit->tree.list(composition->params)) {
        const ast::Param& param = decl.unit->tree[id];
        if (used_.contains(&param)) continue;
        reporter_.report<DiagKind::UnusedParameter>(param.name.span, param.name.text,
                                                    composition->name.text);
      }
    }
    return spec;
  }

  std::unique_ptr<Spec> of_expr(const FileUnit& unit, ast::ExprId id) {
    const ast::Expr& node = unit.tree[id];
    if (const auto* paren = std::get_if<ast::Paren>(&node.node)) return of_expr(unit, paren->inner);
    if (const auto* name = std::get_if<ast::NameRef>(&node.node)) return of_name(unit, name->name);
    if (const auto* field = std::get_if<ast::FieldRef>(&node.node)) {
      const auto* base = std::get_if<ast::NameRef>(&unit.tree[field->base].node);
      const auto decl =
          base == nullptr ? std::nullopt : find_qualified(unit, base->name.text, field->field.text);
      if (decl) return of_decl(*decl, field->field);
      reporter_.report<DiagKind::UnknownCompressor>(node.span, field->field.text);
      return nullptr;
    }
    if (const auto* call = std::get_if<ast::Call>(&node.node)) {
      auto spec = of_expr(unit, call->callee);
      if (spec == nullptr) return nullptr;
      return apply(unit, *call, std::move(spec));
    }
    reporter_.report<DiagKind::NotACompressor>(node.span,
                                               std::string(unit.source->text(node.span)));
    return nullptr;
  }

 private:
  // Compositions that use each other twice can grow like powers of two.
  bool may_go_on() {
    if (++num_made_ <= kMostCompressors) return true;
    reporter_.work().is_over = true;
    reporter_.report<DiagKind::TooLarge>(name_.span, name_.text, std::to_string(kMostCompressors),
                                         "compressors");
    return false;
  }

  bool may_add(const Spec& spec) {
    return may_go_on() && std::ranges::all_of(spec.inner, [&](const auto& entry) {
             return may_add(*entry.second);
           });
  }

  // Is this the text of the clause `again` itself?
  bool is_in_clause() const { return clause_ != nullptr && open_.empty(); }

  // The parameter of the current composition, or of the clause's compressor, with that name.
  const ast::Param* visible_param(const FileUnit& unit, const std::string& name) const {
    if (open_.empty() && clause_ == nullptr) return nullptr;
    const DeclRef& decl = open_.empty() ? clause_->owner.decl : open_.back();
    if (decl.unit != &unit) return nullptr;
    const auto& params = open_.empty() ? clause_->owner.node->params
                                       : std::get<ast::Composition>((*decl).node).params;
    for (ast::ParamId param : unit.tree.list(params)) {
      if (unit.tree[param].name.text == name) return &unit.tree[param];
    }
    return nullptr;
  }

  // The parameter that an argument names.
  const ast::Param* named_param(const FileUnit& unit, ast::ExprId id) const {
    const auto* name = std::get_if<ast::NameRef>(&unit.tree[id].node);
    return name == nullptr ? nullptr : visible_param(unit, name->name.text);
  }

  // Reports an expression that computes with a parameter of the current composition.
  bool uses_named(const FileUnit& unit, ast::ExprId id) {
    const auto& node = unit.tree[id].node;
    if (const ast::Param* named = named_param(unit, id)) {
      used_.insert(named);
      reporter_.report<DiagKind::NotConstant>(unit.tree[id].span)
          .note("a parameter is handed on as it is: `name: " + named->name.text + "`");
      return true;
    }
    if (const auto* paren = std::get_if<ast::Paren>(&node)) return uses_named(unit, paren->inner);
    if (const auto* unary = std::get_if<ast::Unary>(&node)) return uses_named(unit, unary->operand);
    if (const auto* binary = std::get_if<ast::Binary>(&node))
      return uses_named(unit, binary->lhs) || uses_named(unit, binary->rhs);
    if (const auto* call = std::get_if<ast::Call>(&node)) {
      return std::ranges::any_of(unit.tree.list(call->args), [&](ast::ArgId arg) {
        return uses_named(unit, unit.tree[arg].value);
      });
    }
    return false;
  }

  bool hand_on(const FileUnit& unit, const ast::Arg& arg, const ast::Param& named, Spec& spec,
               const ast::Param& param) {
    used_.insert(&named);
    const std::string& own = named.name.text;
    if (is_in_clause() && clause_->owner.fixed.contains(own)) {
      spec.fixed[param.name.text] = clause_->owner.fixed.at(own);
      spec.fixed_spans[param.name.text] = unit.tree[arg.value].span;
      return true;
    }
    if (named.is_const != param.is_const) {
      reporter_.report<DiagKind::BadType>(
          unit.tree[arg.value].span,
          param.is_const ? "a `const` parameter" : "a parameter that is not `const`",
          "`" + named.name.text + "`");
      return false;
    }
    spec.named[param.name.text].push_back({&unit, &named});
    if (!is_in_clause()) return true;
    // A parameter that the clause's compressor leaves open keeps the names that compositions gave
    // it.
    const Spec& owner = clause_->owner;
    if (const auto outer = owner.named.find(own); outer != owner.named.end()) {
      auto& names = spec.named[param.name.text];
      names.insert(names.end(), outer->second.begin(), outer->second.end());
    }
    const auto outside = owner.outside.find(own);
    if (outside != owner.outside.end()) spec.outside[param.name.text] = outside->second;
    return true;
  }

  std::unique_ptr<Spec> of_name(const FileUnit& unit, const ast::Name& name) {
    if (is_in_clause() && clause_->owner.inner.contains(name.text)) {
      auto carrier = clause_->carrier_of(name.text);
      return carrier != nullptr && may_add(*carrier) ? std::move(carrier) : nullptr;
    }
    const std::size_t errors = reporter_.num_errors();
    const auto decl = find_decl(unit, name.text, name.span, reporter_);
    if (decl) return of_decl(*decl, name);
    if (reporter_.num_errors() == errors) {
      auto& diag = reporter_.report<DiagKind::UnknownCompressor>(name.span, name.text);
      const std::string family = library_family(module_, name.text);
      if (family.empty()) {
        diag.suggest(name.span, std::string(dsl::nearest_name(name.text, visible_names(unit))));
      } else {
        diag.note("`" + name.text + "` is in the library: `import std." + family + "`");
      }
    }
    return nullptr;
  }

  std::unique_ptr<Spec> apply(const FileUnit& unit, const ast::Call& call,
                              std::unique_ptr<Spec> spec) {
    const ast::Module& tree = spec->decl.unit->tree;
    for (ast::ParamId id : tree.list(spec->node->params)) {
      if (call.args.count > 0 || spec->inner.contains(tree[id].name.text) ||
          !is_compressor_param(*spec->decl.unit, tree[id]))
        continue;
      reporter_.report<DiagKind::NeedsInner>(unit.tree[call.callee].span, spec->node->name.text,
                                             tree[id].name.text);
      return nullptr;
    }
    bool is_good = true;
    for (ast::ArgId id : unit.tree.list(call.args))
      is_good &= apply_one(unit, unit.tree[id], *spec);
    return is_good ? std::move(spec) : nullptr;
  }

  bool apply_one(const FileUnit& unit, const ast::Arg& arg, Spec& spec) {
    if (const ast::Param* own = find_own(spec, arg.label.text)) return set(unit, arg, spec, *own);
    const std::vector<OpenParam> open = open_params(spec);
    // A composition may pass one parameter on to several compressors.
    bool is_known = false, is_good = true;
    for (const OpenParam& param : open) {
      if (param.name != arg.label.text) continue;
      is_known = true;
      is_good &= set(unit, arg, *param.spec, *param.param);
    }
    if (is_known) return is_good;
    const std::string& label = arg.label.text;
    auto& diag = reporter_.report<DiagKind::UnknownParameter>(
        label.empty() ? arg.span : arg.label.span, spec.node->name.text,
        label.empty() ? "for this value" : "`" + label + "`");
    auto names = mapped<std::string_view>(open, &OpenParam::name);
    const std::string_view near = label.empty() ? "" : dsl::nearest_name(label, names);
    diag.suggest(arg.label.span, std::string(near));
    if (near.empty()) diag.note(parameters_text(spec, names));
    return false;
  }

  // Its parameters that have no value yet, for a note.
  static std::string parameters_text(const Spec& spec, std::vector<std::string_view> names) {
    for (ast::ParamId id : spec.decl.unit->tree.list(spec.node->params)) {
      const ast::Param& param = spec.decl.unit->tree[id];
      if (is_compressor_param(*spec.decl.unit, param) && !spec.inner.contains(param.name.text))
        names.insert(names.begin(), param.name.text);
    }
    return names_text("parameters that have no value yet:", names);
  }

  // The compressor's own open parameter of that name; the first one for an empty name.
  const ast::Param* find_own(const Spec& spec, const std::string& name) {
    const ast::Module& tree = spec.decl.unit->tree;
    for (std::uint32_t i = 0; i < spec.node->params.count; ++i) {
      const ast::Param& param = tree[tree.params.pool[spec.node->params.first + i]];
      const std::string& own = param.name.text;
      if (spec.fixed.contains(own) || spec.inner.contains(own) || spec.named.contains(own))
        continue;
      if (name.empty() || own == name) return &param;
    }
    return nullptr;
  }

  bool set(const FileUnit& unit, const ast::Arg& arg, Spec& spec, const ast::Param& param) {
    if (is_compressor_param(*spec.decl.unit, param)) {
      auto inner = of_expr(unit, arg.value);
      const bool is_good = inner != nullptr;
      if (is_good) spec.inner[param.name.text] = std::move(inner);
      return is_good;
    }
    if (const ast::Param* named = named_param(unit, arg.value)) {
      return hand_on(unit, arg, *named, spec, param);
    }
    const ast::Module& declaring = spec.decl.unit->tree;
    auto value = word_given(declaring, param, unit.tree, arg.value);
    if (!value && is_wrong_word(declaring, param, unit, arg.value, reporter_)) return false;
    if (!value && uses_named(unit, arg.value)) return false;
    if (!value) value = Elaboration(module_, reporter_).numbers.evaluate_constant(unit, arg.value);
    if (!value) return false;
    spec.fixed[param.name.text] = *value;
    spec.fixed_spans[param.name.text] = unit.tree[arg.value].span;
    return true;
  }

  ModuleData& module_;
  Reporter& reporter_;
  const ast::Name& name_;  // of the outermost composition
  const ClauseScope* clause_;
  std::size_t num_made_ = 0;
  std::vector<DeclRef> open_;
  std::set<const ast::Param*> used_;  // of compositions
};

}  // namespace

std::optional<Constant> word_given(const ast::Module& declaring, const ast::Param& param,
                                   const ast::Module& tree, ast::ExprId id) {
  const auto* words = std::get_if<ast::EnumType>(&declaring[param.type].node);
  const auto* name = std::get_if<ast::NameRef>(&tree[id].node);
  if (words == nullptr || name == nullptr) return std::nullopt;
  const auto is_it = [&](const ast::Name& word) { return word.text == name->name.text; };
  const auto at = std::ranges::find_if(words->names, is_it);
  if (at == words->names.end()) return std::nullopt;
  return Constant{HostValue::from_int(at - words->names.begin()), false, {}};
}

bool is_wrong_word(const ast::Module& declaring, const ast::Param& param, const FileUnit& unit,
                   ast::ExprId id, Reporter& reporter) {
  const auto* words = std::get_if<ast::EnumType>(&declaring[param.type].node);
  const auto* name = std::get_if<ast::NameRef>(&unit.tree[id].node);
  if (words == nullptr || name == nullptr) return false;
  if (find_decl(unit, name->name.text, name->name.span, reporter)) return false;
  auto known = mapped<std::string_view>(words->names, &ast::Name::text);
  auto& diag = reporter.report<DiagKind::ParameterOutOfRange>(
      name->name.span, param.name.text, "`" + name->name.text + "`",
      fmt::format("{{{}}}", fmt::join(known, ", ")));
  diag.suggest(name->name.span, std::string(dsl::nearest_name(name->name.text, known)));
  return true;
}

std::unique_ptr<Spec> make_spec(ModuleData& module, const DeclRef& decl, Reporter& reporter) {
  const ast::Name& name = *declared_name(*decl);
  return SpecMaker(module, reporter, name).of_decl(decl, name);
}

std::unique_ptr<Spec> make_clause_spec(ModuleData& module, const ClauseScope& clause,
                                       ast::ExprId carrier, Reporter& reporter) {
  const Spec& owner = clause.owner;
  return SpecMaker(module, reporter, owner.node->name, &clause).of_expr(*owner.decl.unit, carrier);
}

bool wants_inner(ModuleData& module, Spec& spec, bool fill) {
  bool wants = false;
  const ast::Module& tree = spec.decl.unit->tree;
  for (std::uint32_t i = 0; i < spec.node->params.count; ++i) {
    const ast::Param& param = tree[tree.params.pool[spec.node->params.first + i]];
    if (!is_compressor_param(*spec.decl.unit, param)) continue;
    auto& inner = spec.inner[param.name.text];
    if (inner == nullptr) {
      wants = true;
      if (!fill) continue;
      inner = std::make_unique<Spec>();
      inner->decl = {module.stand_in.get(), module.stand_in->tree.decls.front()};
      inner->node = &std::get<ast::Compressor>((*inner->decl).node);
      inner->is_stand_in = true;
    }
    wants |= wants_inner(module, *inner, fill);
  }
  if (!fill) std::erase_if(spec.inner, [](const auto& entry) { return entry.second == nullptr; });
  return wants;
}

namespace {

std::uint32_t first_free_number(const Spec& spec) {
  std::uint32_t first = spec.number ? *spec.number + 1 : 0;
  for (const auto& [slot, inner] : spec.inner) {
    if (inner != nullptr) first = std::max(first, first_free_number(*inner));
  }
  return first;
}

// A clause may have named one compressor twice.
void number_from(Spec& spec, std::uint32_t& next, std::set<std::uint32_t>& used) {
  if (!spec.number || !used.insert(*spec.number).second) spec.number = next++;
  for (auto& [slot, inner] : spec.inner) {
    if (inner != nullptr) number_from(*inner, next, used);
  }
}

}  // namespace

void number_compressors(Spec& spec) {
  std::uint32_t next = first_free_number(spec);
  std::set<std::uint32_t> used;
  number_from(spec, next, used);
}

std::vector<OpenParam> open_params(Spec& spec) {
  std::vector<OpenParam> open;
  const ast::Module& tree = spec.decl.unit->tree;
  for (std::uint32_t i = 0; i < spec.node->params.count; ++i) {
    const ast::Param& param = tree[tree.params.pool[spec.node->params.first + i]];
    const std::string& name = param.name.text;
    if (is_compressor_param(*spec.decl.unit, param) || spec.fixed.contains(name)) continue;
    const auto named = spec.named.find(name);
    const ast::Param* declared =
        named == spec.named.end() ? nullptr : named->second.back().declared;
    open.push_back({declared == nullptr ? name : declared->name.text, &spec, &param, declared});
  }
  for (auto& [slot, inner] : spec.inner) {
    if (inner == nullptr) continue;
    for (OpenParam param : open_params(*inner)) {
      const bool is_taken = std::any_of(open.begin(), open.end(), [&](const OpenParam& other) {
        // A composition may pass one parameter on to several compressors.
        const bool is_same = param.declared != nullptr && other.declared == param.declared;
        return other.name == param.name && !is_same;
      });
      if (is_taken) param.name = slot + "." + param.name;
      open.push_back(param);
    }
  }
  return open;
}

}  // namespace cinch::sema
