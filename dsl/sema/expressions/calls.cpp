// Finds the function or operator that a call means.
#include <algorithm>

#include "dsl/diag/render.h"
#include "dsl/sema/builtins.h"
#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/expressions/calls.h"

namespace cinch::sema {
using dsl::DiagKind;

namespace {

bool is_function(const ast::Decl& decl) {
  return std::holds_alternative<ast::Fn>(decl.node) ||
         std::holds_alternative<ast::ExternFn>(decl.node);
}

}  // namespace

Value Calls::call(const ast::Call& node, Span span) {
  const ast::Expr& callee = tree()[node.callee];
  if (const auto* name = std::get_if<ast::NameRef>(&callee.node)) {
    return call_named(node, name->name, span);
  }
  if (const auto* member = std::get_if<ast::FieldRef>(&callee.node)) {
    return call_member(node, *member, span);
  }
  reporter_.report<DiagKind::UnknownOperator>(callee.span, "this");
  return error_value(span);
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
    const CallArgs sorted = all_.arguments.sort_args(node, name.text, span, {}, arity, arity);
    if (sorted.is_bad) return error_value(span);
    std::vector<Value> values;
    values.reserve(sorted.positional.size());
    for (ast::ExprId id : sorted.positional) values.push_back(all_.exprs.expr(id));
    return all_.scalars.scalar_op(*scalar_function, std::move(values), span, name.text);
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
    diag.suggest(name.span, std::string(dsl::nearest_name(name.text, known)));
  } else {
    diag.note("`" + name.text + "` is in the library: `import std." + home + "`");
  }
  return error_value(span);
}

Value Calls::call_decl(const DeclRef& decl, const ast::Call& node, const ast::Name& name,
                       Span span) {
  if (const auto* fn = std::get_if<ast::Fn>(&(*decl).node))
    return all_.functions.call_fn(decl, *fn, node, span);
  if (const auto* fn = std::get_if<ast::ExternFn>(&(*decl).node))
    return all_.externs.call_extern(decl, *fn, node, span);
  reporter_.report<DiagKind::NotAValue>(name.span, name.text, decl_noun(*decl), "a function");
  return error_value(span);
}

// Calls of inner.encode(x), inner.decode(w), inner.finish(sum) and file.function(x).
Value Calls::call_member(const ast::Call& node, const ast::FieldRef& member, Span span) {
  const auto* base = std::get_if<ast::NameRef>(&tree()[member.base].node);
  const Symbol* symbol = base == nullptr ? nullptr : all_.names.find_symbol(base->name.text);
  if (symbol == nullptr && base != nullptr) {
    if (const auto decl = find_qualified(*env_->unit, base->name.text, member.field.text)) {
      return call_decl(*decl, node, member.field, span);
    }
  }
  if (symbol == nullptr || symbol->kind != SymbolKind::Inner) {
    reporter_.report<DiagKind::UnknownOperator>(
        tree()[node.callee].span, std::string(env_->unit->source->text(tree()[node.callee].span)));
    return error_value(span);
  }
  Instance& inner = *symbol->inner;
  const std::string& what = member.field.text;
  if (what != "encode" && what != "decode" && what != "finish") {
    reporter_.report<DiagKind::UnknownMember>(member.field.span, what)
        .suggest(member.field.span,
                 std::string(dsl::nearest_name(what, {"encode", "decode", "finish"})));
    return error_value(span);
  }
  const CallArgs args =
      all_.arguments.sort_args(node, base->name.text + "." + what, span, {}, 1, 1);
  if (args.is_bad) return error_value(span);
  Value arg = all_.exprs.expr(args.positional[0]);
  if (arg.is_error()) return arg;
  if (mode_.lambda_depth > 0) {
    reporter_.report<DiagKind::NotInLambda>(span, "`" + args.name + "`");
    return error_value(span);
  }
  if (what == "encode") {
    if (mode_.body == BodyKind::Decode) {
      reporter_.report<DiagKind::NotInDecode>(span, "`" + args.name + "`");
      return error_value(span);
    }
    const Value g = all_.methods.inner_argument(arg, inner, span);
    if (g.is_error()) return error_value(span);
    return mode_.body == BodyKind::Finish ? all_.methods.encode_in_finish(inner, g, span)
                                          : all_.methods.encode_value(inner, g, span);
  }
  if (what == "finish") {
    const Value sum = all_.methods.inner_argument(arg, inner, span);
    return sum.is_error() ? sum
                          : all_.methods.outer_result(all_.methods.finish_value(inner, sum, span),
                                                      inner, span);
  }
  if (arg.kind == ValueKind::Wire) arg = all_.payloads.payload_of(*arg.owner, arg, "w", span);
  if (arg.kind != ValueKind::Payload ||
      all_.payloads.wire_owner(*arg.owner) != all_.payloads.wire_owner(inner)) {
    reporter_.report<DiagKind::InnerShape>(arg.span, "its own payload", text_.describe(arg));
    return error_value(span);
  }
  arg.owner = &inner;
  return all_.methods.outer_result(all_.methods.decode_value(inner, arg, span), inner, span);
}

// Named operators: labels, numbers of operands, and dispatch by group.

namespace {

// The labels and the number of operands of an operator. `min` allows state inits to leave out
// sizes.
struct Form {
  std::vector<std::string_view> labels;
  std::size_t min, max;
};

constexpr std::size_t kAny = 64;

// A table.
Form form_of(BuiltinId id) {
  switch (id) {
    case BuiltinId::map:
      return {{}, 2, kAny};
    case BuiltinId::fill:
      return {{}, 1, 2};
    case BuiltinId::len:
    case BuiltinId::transpose:
    case BuiltinId::orthonormalize:
    case BuiltinId::hadamard:
    case BuiltinId::allgather:
    case BuiltinId::all_to_all:
    case BuiltinId::reduce_scatter:
      return {{}, 1, 1};
    case BuiltinId::reduce:
      return {{"where", "axis"}, 3, 3};
    case BuiltinId::dot:
      return {{"where", "axis"}, 2, 2};
    case BuiltinId::scan:
      return {{"exclusive", "axis"}, 3, 3};
    case BuiltinId::cumsum:
      return {{"exclusive", "axis"}, 1, 1};
    case BuiltinId::filter:
      return {{"where", "limit"}, 1, 1};
    case BuiltinId::nonzero:
      return {{"limit"}, 1, 1};
    case BuiltinId::sort:
    case BuiltinId::argsort:
      return {{"descending", "axis"}, 1, 1};
    case BuiltinId::sort_by_key:
      return {{"descending", "axis"}, 2, 2};
    case BuiltinId::top_k:
    case BuiltinId::kth_largest:
      return {{"axis"}, 2, 2};
    case BuiltinId::pack:
      return {{"bits"}, 1, 1};
    case BuiltinId::unpack:
      return {{"bits", "size"}, 1, 1};
    case BuiltinId::concat:
      return {{}, 1, kAny};
    case BuiltinId::slice:
      return {{}, 3, 3};
    case BuiltinId::scatter:
      return {{"at", "size", "keep"}, 1, 1};
    case BuiltinId::scatter_add:
    case BuiltinId::scatter_min:
    case BuiltinId::scatter_max:
      return {{"at", "size"}, 1, 1};
    case BuiltinId::reshape:
      return {{}, 2, 3};
    case BuiltinId::floor_div:
    case BuiltinId::chunk:
    case BuiltinId::unchunk:
    case BuiltinId::allreduce:
      return {{}, 2, 2};
    case BuiltinId::iota:
      return {{}, 0, 1};
    case BuiltinId::histogram:
      return {{"bins", "where"}, 1, 1};
    case BuiltinId::random:
    case BuiltinId::random_bits:
    case BuiltinId::normal:
      return {{"shared", "stream"}, 0, 1};
    case BuiltinId::random_index:
      return {{"size", "shared", "stream"}, 0, 1};
    case BuiltinId::stochastic_round:
      return {{"shared", "stream"}, 1, 1};
    case BuiltinId::broadcast:
      return {{"root"}, 1, 1};
    case BuiltinId::sendrecv:
      return {{"to"}, 1, 1};
    default:
      return {{"where", "axis"}, 1, 1};
  }
}

}  // namespace

Value Calls::call_builtin(const ast::Call& node, BuiltinId id, const ast::Name& name, Span span) {
  const Form form = form_of(id);
  const CallArgs args =
      all_.arguments.sort_args(node, name.text, span, form.labels, form.min, form.max);
  if (args.is_bad) return error_value(span);
  if (is_by_rows() && !mode_.in_host && !all_.rows.has_row_form(id)) {
    return all_.rows.not_by_rows("`" + name.text + "`", span);
  }
  switch (builtin_info(id).group) {
    case BuiltinGroup::Map:
      if (id == BuiltinId::map) return all_.maps.map_call(args);
      if (id == BuiltinId::floor_div) return all_.maps.floor_div_call(args);
      return id == BuiltinId::fill ? all_.maps.fill_call(args) : all_.maps.len_call(args);
    case BuiltinGroup::Reduce:
      return id == BuiltinId::reduce ? all_.reductions.reduce_lambda_call(args)
                                     : all_.reductions.reduce_call(id, args);
    case BuiltinGroup::Scan:
      return all_.reductions.scan_call(id, args);
    case BuiltinGroup::Filter:
      return all_.selections.filter_call(id, args);
    case BuiltinGroup::Sort:
      return id == BuiltinId::top_k || id == BuiltinId::kth_largest
                 ? all_.selections.top_k_call(id, args)
                 : all_.selections.sort_call(id, args);
    case BuiltinGroup::Pack:
    case BuiltinGroup::Move:
      return all_.moves.move_call(id, args);
    case BuiltinGroup::Random:
      return id == BuiltinId::stochastic_round ? all_.random.stochastic_round_call(args)
                                               : all_.random.random_call(id, args);
    case BuiltinGroup::Matrix:
      return all_.matrices.matrix_call(id, args);
    case BuiltinGroup::Collective:
      return all_.collectives.collective_call(id, args);
  }
  return error_value(span);
}

}  // namespace cinch::sema
