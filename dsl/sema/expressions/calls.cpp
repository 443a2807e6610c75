// Finds the function or operator that a call means.
#include <algorithm>

#include "dsl/diag/foreign_words.h"
#include "dsl/diag/render.h"
#include "dsl/sema/builtins.h"
#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/expressions/expressions.h"
#include "runtime/core/mapped.h"

namespace cinch::sema {
using dsl::DiagKind;

static bool is_function(const ast::Decl& decl) {
  return std::holds_alternative<ast::Fn>(decl.node) ||
         std::holds_alternative<ast::ExternFn>(decl.node);
}

Value Calls::call(const ast::Call& node, Span span) {
  const ast::Expr& callee = tree()[node.callee];
  if (const auto* name = std::get_if<ast::NameRef>(&callee.node)) {
    return call_named(node, name->name, span);
  }
  if (const auto* member = std::get_if<ast::FieldRef>(&callee.node)) {
    return call_member(node, *member, span);
  }
  return mistake<DiagKind::UnknownOperator>(callee.span, "this");
}

Value Calls::call_named(const ast::Call& node, const ast::Name& name, Span span) {
  const auto own = env_->unit->names.find(name.text);
  if (own != env_->unit->names.end() && is_function(env_->unit->tree[own->second])) {
    return call_decl({env_->unit, own->second}, node, name, span);
  }
  const auto scalar_function = find_scalar_function(name.text);
  const auto named = find_builtin(name.text);
  const bool is_reduction_too = scalar_function && named;
  const bool is_scalar =
      scalar_function && (!is_reduction_too || tree().list(node.args).size() > 1);
  const auto has_label = [&](ast::ArgId id) { return !tree()[id].label.text.empty(); };
  const auto args = tree().list(node.args);
  const bool is_labelled = std::any_of(args.begin(), args.end(), has_label);
  if (is_scalar && !(is_reduction_too && is_labelled)) {
    const auto arity = static_cast<std::size_t>(scalar_op_info(*scalar_function).arity);
    const CallArgs sorted = sort_args(node, name.text, span, {}, arity, arity);
    if (sorted.is_bad) return error_value(span);
    auto values =
        mapped<Value>(sorted.positional, [&](ast::ExprId id) { return all_.exprs.expr(id); });
    return all_.operators.scalar_op(*scalar_function, std::move(values), span, name.text);
  }
  if (named && *named != BuiltinId::matmul) return call_builtin(node, *named, name, span);
  const std::size_t errors = reporter_.num_errors();
  if (const auto decl = find_decl(*env_->unit, name.text, name.span, reporter_)) {
    return call_decl(*decl, node, name, span);
  }
  if (reporter_.num_errors() != errors) return error_value(span);
  std::vector<std::string_view> known(scalar_functions().begin(), scalar_functions().end());
  for (std::size_t i = 0; i < num_builtins(); ++i) {
    known.push_back(builtin_info(static_cast<BuiltinId>(i)).name);
  }
  if (reporter_.num_errors() < dsl::kMostShown) {
    for (std::string_view visible : visible_names(*env_->unit)) known.push_back(visible);
  }
  auto& diag = reporter_.report<DiagKind::UnknownOperator>(name.span, name.text);
  const std::string home = module_of_function(module_, name.text);
  if (home.empty()) {
    dsl::explain_word(diag, dsl::ForeignPlace::Function, name.text, name.span,
                      dsl::nearest_name(name.text, known));
  } else {
    diag.note("`" + name.text + "` is in the library: `import std." + home + "`");
  }
  return error_value(span);
}

Value Calls::call_decl(const DeclRef& decl, const ast::Call& node, const ast::Name& name,
                       Span span) {
  if (const auto* fn = std::get_if<ast::Fn>(&(*decl).node)) return call_fn(decl, *fn, node, span);
  if (const auto* fn = std::get_if<ast::ExternFn>(&(*decl).node))
    return call_extern(decl, *fn, node, span);
  return mistake<DiagKind::NotAValue>(name.span, name.text, decl_noun(*decl), "a function");
}

// Calls of inner.encode(x), inner.decode(w), inner.finish(sum) and file.function(x).
Value Calls::call_member(const ast::Call& node, const ast::FieldRef& member, Span span) {
  const auto* base = std::get_if<ast::NameRef>(&tree()[member.base].node);
  const Symbol* symbol = base == nullptr ? nullptr : all_.exprs.find_symbol(base->name.text);
  if (symbol == nullptr && base != nullptr) {
    if (const auto decl = find_qualified(*env_->unit, base->name.text, member.field.text)) {
      return call_decl(*decl, node, member.field, span);
    }
  }
  if (symbol == nullptr || symbol->kind != SymbolKind::Inner)
    return unknown_member_call(node, member, symbol == nullptr && base != nullptr);
  Instance& inner = *symbol->inner;
  const std::string& what = member.field.text;
  if (what != "encode" && what != "decode" && what != "finish")
    return error_value(reporter_.report<DiagKind::UnknownMember>(member.field.span, what)
                           .suggest(member.field.span, std::string(dsl::nearest_name(
                                                           what, {"encode", "decode", "finish"}))));
  const CallArgs args = sort_args(node, base->name.text + "." + what, span, {}, 1, 1);
  if (args.is_bad) return error_value(span);
  Value arg = FOUND(all_.exprs.expr(args.positional[0]));
  if (mode_.lambda_depth > 0) return mistake<DiagKind::NotInLambda>(span, "`" + args.name + "`");
  if (what == "encode") {
    if (mode_.body == BodyKind::Decode)
      return mistake<DiagKind::NotInDecode>(span, "`" + args.name + "`");
    const Value g = FOUND(all_.bodies.inner_argument(arg, inner, span));
    return mode_.body == BodyKind::Finish ? all_.bodies.encode_in_finish(inner, g, span)
                                          : all_.bodies.encode_value(inner, g, span);
  }
  if (what == "finish") {
    const Value sum = all_.bodies.inner_argument(arg, inner, span);
    return sum.is_error()
               ? sum
               : all_.bodies.outer_result(all_.bodies.finish_value(inner, sum, span), inner, span);
  }
  if (arg.kind == ValueKind::Wire) arg = all_.bodies.payload_of(*arg.owner, arg, "w", span);
  if (arg.kind != ValueKind::Payload ||
      all_.bodies.wire_owner(*arg.owner) != all_.bodies.wire_owner(inner))
    return mistake<DiagKind::InnerShape>(arg.span, "its own payload", text_.describe(arg));
  arg.owner = &inner;
  return all_.bodies.outer_result(all_.bodies.decode_value(inner, arg, span), inner, span);
}

// `x.abs()` and `np.abs(x)`: operators are no methods, and have no module before their name.
Value Calls::unknown_member_call(const ast::Call& node, const ast::FieldRef& member,
                                 bool is_module) {
  using dsl::ForeignPlace;
  const auto text_of = [&](Span span) { return std::string(env_->unit->source->text(span)); };
  const Span span = tree()[node.callee].span;
  auto& diag = reporter_.report<DiagKind::UnknownOperator>(span, text_of(span));
  const std::string& name = member.field.text;
  const std::string base = text_of(tree()[member.base].span);
  std::string operands = is_module ? "" : base;
  for (ast::ArgId arg : tree().list(node.args))
    operands += (operands.empty() ? "" : ", ") + text_of(tree()[arg].span);
  const std::string call = name + "(" + operands + ")";
  std::string note = is_module ? std::string() : dsl::foreign_note(ForeignPlace::Member, name);
  if (is_operator_name(name)) {
    note = is_module ? dsl::foreign_note(ForeignPlace::Name, base, call)
                     : dsl::foreign_note(ForeignPlace::Member, "abs", call);
  }
  if (note.empty()) note = dsl::foreign_note(ForeignPlace::Function, name);
  if (note.empty() && is_module) note = dsl::foreign_note(ForeignPlace::Name, base);
  if (!note.empty()) diag.note(std::move(note));
  return error_value(span);
}

// Named operators: labels, numbers of operands, and dispatch by group.

namespace {

struct Form {
  std::vector<std::string_view> labels;
  std::size_t min = 0, max = 0;  // operands
};

constexpr std::size_t kAny = 64;

// The labels and the number of operands of an operator, from the list in its signature.
Form form_of(BuiltinId id) {
  Form form;
  std::string_view rest = builtin_info(id).signature;
  bool takes_more = false;
  do {
    rest.remove_prefix(rest.find_first_not_of(" ,(", rest.find_first_of("(,")));
    // A lambda has commas of its own.
    const std::size_t begin = rest.starts_with('|') ? rest.find('|', 1) : 0;
    const std::string_view operand = rest.substr(0, rest.find_first_of(",)", begin));
    rest.remove_prefix(operand.size());
    if (const auto colon = operand.find(':'); colon != std::string_view::npos) {
      form.labels.push_back(operand.substr(0, colon));
    } else if (operand == "…") {
      takes_more = true;
    } else {
      ++form.min;
    }
  } while (rest.starts_with(','));
  form.max = takes_more ? kAny : form.min + (id == BuiltinId::reshape ? 1 : 0);
  // State inits leave out sizes.
  const bool is_draw = builtin_info(id).group == BuiltinGroup::Random;
  const bool may_lack_size = id == BuiltinId::fill || id == BuiltinId::iota ||
                             (is_draw && id != BuiltinId::stochastic_round);
  const bool takes_one = id == BuiltinId::concat || id == BuiltinId::stack;
  if (may_lack_size || takes_one) --form.min;
  return form;
}

}  // namespace

Value Calls::call_builtin(const ast::Call& node, BuiltinId id, const ast::Name& name, Span span) {
  const Form form = form_of(id);
  CallArgs args = sort_args(node, name.text, span, form.labels, form.min, form.max);
  args.id = id;
  if (args.is_bad) return error_value(span);
  if (is_by_rows() && !mode_.in_host && !all_.items.has_row_form(id)) {
    return all_.items.not_by_rows("`" + name.text + "`", span);
  }
  static constexpr Value (Operators::* kCalls[])(const CallArgs&) = {
#define BUILTIN(name, group, call, signature, meaning) &Operators::call,
#include "dsl/sema/builtins.def"
  };
  return (all_.operators.*kCalls[static_cast<std::size_t>(id)])(args);
}

}  // namespace cinch::sema
