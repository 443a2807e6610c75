// Look-up of names, and `a.b`.
#include "dsl/sema/expressions/expressions.h"

#include <utility>

#include "dsl/diag/foreign_words.h"
#include "dsl/diag/render.h"
#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/params.h"

namespace cinch::sema {

using dsl::DiagKind;

const Symbol* Expressions::find_symbol(std::string_view name) const {
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

void Expressions::unknown_name(const ast::Name& name) {
  // Later mistakes are not shown, and this search takes long if there are many names.
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
  for (std::string_view known : {"world", "worker", "machine_ranks", "step"}) seen.push_back(known);
  auto& diag = reporter_.report<DiagKind::UnknownName>(name.span, name.text);
  dsl::explain_word(diag, dsl::ForeignPlace::Name, name.text, name.span,
                    dsl::nearest_name(name.text, seen));
  if (name.text == "r" || name.text == "c") {
    diag.note("`r` and `c` are the sizes of a matrix gradient: `g: [f32; r, c]`");
  }
}

Value Expressions::worker(Span span) {
  if (mode_.body == BodyKind::Decode)
    return error_value(reporter_.report<DiagKind::NotInDecode>(span, "`worker` here")
                           .note("a `decode` whose `wire` lists its fields may name `worker`, and "
                                 "hand it to a function"));
  if (mode_.encodes_in_finish)
    return mistake<DiagKind::NotInFinish>(span, "an encode that sees `worker`");
  if (mode_.in_host || mode_.body == BodyKind::StateInit) {
    if (mode_.is_tried) return error_value(span);
    return error_value(reporter_.report<DiagKind::NotKnownOnHost>(span, "a size")
                           .note("`worker` differs from rank to rank"));
  }
  return host_value(pool().worker(), span);
}

Value Expressions::builtin_name(const ast::Name& name) {
  const std::string& text = name.text;
  const Instance* instance = env_->instance;
  if (mode_.in_constant) return mistake<DiagKind::NotConstant>(name.span);
  if (text == "n")
    return host_value(instance == nullptr ? pool().n() : instance->elements, name.span);
  if (text == "world") return host_value(pool().world(), name.span);
  if (text == "step") return host_value(pool().step(), name.span);
  if (text == "machine_ranks") {
    if (mode_.body != BodyKind::Sync) return mistake<DiagKind::OnlyInSync>(name.span, text);
    return host_value(pool().machine_ranks(), name.span);
  }
  if (text == kWorker) return worker(name.span);
  if (instance == nullptr || !instance->is_matrix) {
    unknown_name(name);
    return error_value(name.span);
  }
  return host_value(text == "r" ? pool().rows() : pool().cols(), name.span);
}

// A payload may be decoded by a session that nobody hands inputs.
Value Expressions::input_in_decode(const Symbol& symbol, const ast::Name& name) {
  return error_value(
      reporter_.report<DiagKind::NotInDecode>(name.span, "the input `" + name.text + "`")
          .note(symbol.span, "the input")
          .note("send what `decode` needs in the payload, or use it in `finish`"));
}

Value Expressions::symbol_value(const Symbol& symbol, const ast::Name& name) {
  switch (symbol.kind) {
    case SymbolKind::Value: {
      if (symbol.is_ambiguous) return all_.params.ambiguous_word(name);
      if (mode_.in_leaves && symbol.leaf) return host_value(symbol.leaf, name.span);
      if (mode_.in_host && symbol.given) return host_value(symbol.given, name.span);
      Value value = symbol.value;
      value.span = name.span;
      return value;
    }
    case SymbolKind::Variable: {
      Value value = build_.read_var(symbol.value.var, name.span);
      if (const IndexFacts* known = all_.facts.of(symbol.value.var)) value.facts = *known;
      return value;
    }
    case SymbolKind::State: {
      if (mode_.body == BodyKind::Decode && symbol.is_input) return input_in_decode(symbol, name);
      if (symbol.is_input && (mode_.in_host || mode_.in_constant))
        return mistake<DiagKind::InputOnHost>(name.span, name.text);
      if (mode_.body == BodyKind::StateInit && symbol.is_input)
        return mistake<DiagKind::StateInit>(name.span, "an input");
      if (mode_.body == BodyKind::Decode)
        return error_value(
            reporter_.report<DiagKind::NotInDecode>(name.span, "the state `" + name.text + "`")
                .note(symbol.span, "the state"));
      if (mode_.body == BodyKind::StateInit)
        return mistake<DiagKind::StateInit>(name.span, "another state");
      Expr read{ExprKind::State, out_.info.states[symbol.index].type, name.span};
      read.index = symbol.index;
      const Value value = build_.typed(std::move(read));
      all_.numbering.note_state_read(value.expr, symbol.index);
      return value;
    }
    case SymbolKind::Param: {
      const DType dtype = symbol.value.type.dtype;
      if (symbol.is_input && (mode_.in_host || mode_.in_constant))
        return mistake<DiagKind::InputOnHost>(name.span, name.text);
      if (symbol.is_input && mode_.body == BodyKind::Decode) return input_in_decode(symbol, name);
      if (symbol.is_input && mode_.body == BodyKind::StateInit)
        return mistake<DiagKind::StateInit>(name.span, "an input");
      if (mode_.in_constant) return mistake<DiagKind::NotConstant>(name.span);
      if (mode_.body == BodyKind::StateInit)
        return mistake<DiagKind::StateInit>(name.span, "a run-time parameter");
      if (symbol.leaf && !mode_.in_host)
        return conversions_.coerce(host_value(symbol.leaf, name.span), dtype);
      if (mode_.in_host) {
        const HostType type = host_type_of(dtype);
        const HostExprId leaf = symbol.leaf ? symbol.leaf : pool().param(symbol.index, type);
        return host_value(type == HostType::Bool ? leaf : pool().cast(leaf, HostType::F64),
                          name.span);
      }
      Expr read{ExprKind::Param, scalar_type(dtype), name.span};
      read.index = symbol.index;
      return build_.typed(std::move(read));
    }
    case SymbolKind::Inner:
      break;
  }
  return mistake<DiagKind::NotAValue>(name.span, name.text, "a wrapped compressor", "a value");
}

Value Expressions::name_expr(const ast::Name& name) {
  if (const Symbol* symbol = find_symbol(name.text)) return symbol_value(*symbol, name);
  if (is_builtin_name(name.text)) return builtin_name(name);
  const std::size_t errors = reporter_.num_errors();
  if (const auto decl = find_decl(*env_->unit, name.text, name.span, reporter_)) {
    return decl_value(*decl, name);
  }
  if (reporter_.num_errors() != errors) return error_value(name.span);
  if (find_builtin(name.text) || find_scalar_op(name.text))
    return mistake<DiagKind::NotAValue>(name.span, name.text, "an operator", "a value");
  unknown_name(name);
  return error_value(name.span);
}

Value Expressions::decl_value(const DeclRef& decl, const ast::Name& name) {
  if (const auto* node = std::get_if<ast::Const>(&(*decl).node)) {
    const GrowthLimits::Use use(all_.growth, name.span);
    Value value = all_.numbers.const_value(decl, *node);
    value.span = name.span;
    return value;
  }
  return mistake<DiagKind::NotAValue>(name.span, name.text, decl_noun(*decl), "a value");
}

void Expressions::with_environment(Environment& env, const std::function<void()>& body) {
  Environment* const outer = std::exchange(env_, &env);
  body();
  env_ = outer;
}

Value Expressions::field_expr(const ast::FieldRef& node, Span span) {
  const ast::Expr& base = tree()[node.base];
  if (const auto* name = std::get_if<ast::NameRef>(&base.node)) {
    const Symbol* symbol = find_symbol(name->name.text);
    if (symbol == nullptr && is_qualifier(*env_->unit, name->name.text)) {
      if (const auto decl = find_qualified(*env_->unit, name->name.text, node.field.text)) {
        return decl_value(*decl, node.field);
      }
      return mistake<DiagKind::UnknownName>(node.field.span,
                                            name->name.text + "." + node.field.text);
    }
    if (symbol != nullptr && symbol->kind == SymbolKind::Inner) {
      if (mode_.in_set) return all_.items.inner_param_value(node);
      return mistake<DiagKind::NotAValue>(span, name->name.text + "." + node.field.text,
                                          "a member of a wrapped compressor", "a value");
    }
  }
  if (mode_.in_set) return all_.items.inner_param_value(node);
  const Value value = FOUND(expr(node.base));
  if (value.kind != ValueKind::Payload) {
    auto& diag = reporter_.report<DiagKind::BadType>(
        value.span, "a payload before `." + node.field.text + "`", text_.describe(value));
    dsl::explain_word(diag, dsl::ForeignPlace::Member, node.field.text, span, "");
    return error_value(span);
  }
  return all_.bodies.payload_field(value, node.field, span);
}

bool Expressions::is_taken(std::string_view name, const Instance* instance) {
  const bool is_dimension = name == "r" || name == "c";
  return is_reserved_name(name) || (is_dimension && instance != nullptr && instance->is_matrix);
}

void Expressions::declare(const ast::Name& name, Symbol symbol) {
  if (is_taken(name.text, env_->instance)) {
    reporter_.report<DiagKind::BuiltinNameTaken>(name.span, name.text);
  }
  symbol.lambda_depth = mode_.lambda_depth;
  text_.record_type(name.span, symbol);
  Scope& scope = env_->scopes.back();
  const auto old = scope.find(name.text);
  if (old != scope.end()) {
    reporter_.report<DiagKind::DuplicateName>(name.span, name.text)
        .note(old->second.span, "first declared here");
  }
  scope.insert_or_assign(name.text, std::move(symbol));
}

}  // namespace cinch::sema
