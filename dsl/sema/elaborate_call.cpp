// Calls: what is called, arguments sorted out, and fns inlined where they are called.
#include <algorithm>

#include "dsl/diag/render.h"
#include "dsl/sema/elaborator.h"
#include "dsl/sema/scalar_functions.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

std::string operands_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " operand" : " operands");
}

bool is_function(const ast::Decl& decl) {
  return std::holds_alternative<ast::Fn>(decl.node) ||
         std::holds_alternative<ast::ExternFn>(decl.node);
}

}  // namespace

Value Elaborator::call(const ast::Call& node, Span span) {
  const ast::Expr& callee = tree()[node.callee];
  if (const auto* name = std::get_if<ast::NameRef>(&callee.node)) {
    return call_named(node, name->name, span);
  }
  if (const auto* member = std::get_if<ast::FieldRef>(&callee.node)) {
    return call_member(node, *member, span);
  }
  reporter_.report<DiagKind::UnknownOperator>(callee.span, "this");
  return error(span);
}

Value Elaborator::call_named(const ast::Call& node, const ast::Name& name, Span span) {
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
    return call_scalar(node, *scalar_function, name, span);
  }
  if (named && *named != BuiltinId::matmul) return call_builtin(node, *named, name, span);
  const std::size_t errors = reporter_.num_errors();
  if (const auto decl = find_decl(*env_->unit, name.text, name.span, reporter_)) {
    return call_decl(*decl, node, name, span);
  }
  if (reporter_.num_errors() != errors) return error(span);
  std::vector<std::string_view> known(scalar_functions().begin(), scalar_functions().end());
  for (std::size_t i = 0; i < num_builtins(); ++i) {
    known.push_back(builtin_info(static_cast<BuiltinId>(i)).name);
  }
  if (reporter_.num_errors() < dsl::kMostShown) {
    for (std::string_view visible : visible_names(*env_->unit)) known.push_back(visible);
  }
  reporter_.report<DiagKind::UnknownOperator>(name.span, name.text)
      .suggest(name.span, std::string(dsl::nearest_name(name.text, known)));
  return error(span);
}

Value Elaborator::call_decl(const DeclRef& decl, const ast::Call& node, const ast::Name& name,
                            Span span) {
  if (const auto* fn = std::get_if<ast::Fn>(&(*decl).node)) return call_fn(decl, *fn, node, span);
  if (const auto* fn = std::get_if<ast::ExternFn>(&(*decl).node)) {
    return call_extern(decl, *fn, node, span);
  }
  reporter_.report<DiagKind::NotAValue>(name.span, name.text, decl_noun(*decl));
  return error(span);
}

Value Elaborator::call_scalar(const ast::Call& node, ScalarOp op, const ast::Name& name,
                              Span span) {
  const auto arity = static_cast<std::size_t>(scalar_op_info(op).arity);
  const CallArgs args = sort_args(node, name.text, span, {}, arity, arity);
  if (args.is_bad) return error(span);
  std::vector<Value> values;
  values.reserve(args.positional.size());
  for (ast::ExprId id : args.positional) values.push_back(expr(id));
  return scalar_op(op, std::move(values), span, name.text);
}

CallArgs Elaborator::sort_args(const ast::Call& node, std::string_view name, Span span,
                               const std::vector<std::string_view>& labels, std::size_t min,
                               std::size_t max) {
  CallArgs args;
  args.name = name;
  args.span = span;
  for (ast::ArgId id : tree().list(node.args)) {
    const ast::Arg& arg = tree()[id];
    const std::string& label = arg.label.text;
    if (label.empty()) {
      args.positional.push_back(arg.value);
    } else if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
      reporter_.report<DiagKind::UnknownArgument>(arg.label.span, args.name, label)
          .suggest(arg.label.span, std::string(dsl::nearest_name(label, labels)));
      args.is_bad = true;
    } else if (!args.named.emplace(label, &arg).second) {
      reporter_.report<DiagKind::DuplicateName>(arg.label.span, label);
      args.is_bad = true;
    }
  }
  const std::size_t found = args.positional.size();
  if (found < min || found > max) {
    const std::string wanted =
        min == max ? operands_text(min) : std::to_string(min) + " to " + operands_text(max);
    auto& diag = reporter_.report<DiagKind::WrongArgumentCount>(span, args.name, wanted,
                                                                std::to_string(found));
    if (const auto known = find_builtin(name)) {
      diag.note("its form is `" + std::string(builtin_info(*known).signature) + "`");
    }
    args.is_bad = true;
  }
  return args;
}

bool Elaborator::flag(const CallArgs& args, std::string_view label) {
  const auto at = args.named.find(label);
  if (at == args.named.end()) return false;
  const auto value = constant_value(at->second->value);
  if (value && value->type != HostType::Bool) {
    reporter_.report<DiagKind::BadType>(tree()[at->second->value].span, "`true` or `false`",
                                        "a number");
  }
  return value && value->type == HostType::Bool && value->as_bool();
}

Value Elaborator::call_fn(const DeclRef& decl, const ast::Fn& fn, const ast::Call& node,
                          Span span) {
  const auto params = decl.unit->tree.params.nodes.empty() ? 0u : fn.params.count;
  const CallArgs args = sort_args(node, fn.name.text, span, {}, params, params);
  if (args.is_bad) return error(span);
  std::vector<Value> values;
  bool has_array = false;
  for (ast::ExprId id : args.positional) {
    values.push_back(expr(id));
    if (values.back().is_error()) return error(span);
    const bool is_value = values.back().is_typed() || values.back().kind == ValueKind::Table;
    has_array |= is_value && value_type(values.back()).rank > 0;
  }
  if (!has_array || !is_of_scalars(decl.unit->tree, fn)) return inline_fn(decl, fn, values, span);
  const auto* several = std::get_if<ast::TupleType>(&decl.unit->tree[fn.result].node);
  if (several == nullptr) return map_fn(decl, fn, values, {}, span);
  return map_each(decl, fn, values, several->elements.count, span);
}

// A fn of scalars that gives several values, on arrays: an array for each of them. All of them see
// the same draws.
Value Elaborator::map_each(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
                           std::size_t num_results, Span span) {
  for (Value& value : values) {
    if (value.is_typed() && value.type.rank > 0) value = shared(value, "operand");
  }
  Instance* const drawn = env_->draw_instance;
  const std::uint32_t shared_draws = env_->shared_draws;
  const std::uint32_t own_draws = drawn == nullptr ? 0 : drawn->own_draws;
  Value results;
  results.kind = ValueKind::Tuple;
  results.span = span;
  for (std::size_t i = 0; i < num_results; ++i) {
    env_->shared_draws = shared_draws;
    if (drawn != nullptr) drawn->own_draws = own_draws;
    results.elements.push_back(map_fn(decl, fn, values, i, span));
    if (results.elements.back().is_error()) return error(span);
  }
  return results;
}

bool Elaborator::is_of_scalars(const ast::Module& tree, const ast::Fn& fn) {
  const auto is_scalar = [&](ast::TypeId id) {
    return std::holds_alternative<ast::ScalarType>(tree[id].node);
  };
  const auto* several = std::get_if<ast::TupleType>(&tree[fn.result].node);
  const bool gives_scalars = several != nullptr
                                 ? std::ranges::all_of(tree.list(several->elements), is_scalar)
                                 : is_scalar(fn.result);
  return gives_scalars && std::ranges::all_of(tree.list(fn.params), [&](ast::ParamId id) {
           return is_scalar(tree[id].type);
         });
}

// A fn of scalars on arrays: element by element, as `map` with a lambda. `result`: which of several
// values.
Value Elaborator::map_fn(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
                         std::optional<std::size_t> result, Span span) {
  const ast::Module& tree = decl.unit->tree;
  const auto params = tree.list(fn.params);
  Environment types{decl.unit, nullptr, {Scope{}}};
  Expr made{ExprKind::Lambda, {}, span};
  std::vector<Value> arrays;
  ++lambda_depth_;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (value_type(values[i]).rank == 0) continue;
    std::optional<DType> dtype;
    with_environment(types, [&] { dtype = dtype_of(tree[params[i]].type); });
    const Value array = dtype ? coerce(values[i], *dtype) : error(span);
    if (array.is_error()) break;
    arrays.push_back(array);
    const Type type = scalar(array.type.dtype);
    const VarId var = add_var(tree[params[i]].name.text, type, false, values[i].span);
    made.params.push_back(var);
    values[i] = read_var(var, values[i].span);
  }
  const bool has_arrays =
      std::ranges::none_of(values, [&](const Value& value) { return value_type(value).rank > 0; });
  const auto applied = [&] {
    const Value given = inline_fn(decl, fn, values, span);
    const bool is_one = !result || given.is_error();
    return materialize(is_one ? given : given.elements[*result]);
  };
  const Value body = has_arrays ? in_block(span, applied) : error(span);
  --lambda_depth_;
  const auto shape = broadcast(arrays, span, fn.name.text);
  if (body.is_error() || !shape) return error(span);
  made.type = body.type;
  made.args = {body.expr};
  std::vector<ExprId> operands;
  operands.reserve(arrays.size() + 1);
  for (const Value& array : arrays) operands.push_back(as_row(array, *shape).expr);
  operands.push_back(typed(std::move(made)).expr);
  Type type = *shape;
  type.dtype = body.type.dtype;
  return builtin(BuiltinId::map, type, std::move(operands), span);
}

Value Elaborator::inline_fn(const DeclRef& decl, const ast::Fn& fn,
                            const std::vector<Value>& values, Span span) {
  for (const Value& value : values) {
    if (is_by_rows() && value.is_typed() && value.type.rank == 2) {
      return not_by_rows("a call of `" + fn.name.text + "`", span);
    }
  }
  if (std::find(open_fns_.begin(), open_fns_.end(), decl) != open_fns_.end()) {
    reporter_.report<DiagKind::RecursiveFn>(span, fn.name.text).note(fn.name.span, "declared here");
    return error(span);
  }
  const Use use(*this, span);
  open_fns_.push_back(decl);
  Value result = in_block(span, [&] {
    Environment env{decl.unit, nullptr, {Scope{}}};
    // Shared draws of a fn count among those of the method that calls it.
    env.shared_draws = env_->shared_draws;
    env.draw_instance = env_->draw_instance;
    Value value = error(span);
    if (bind_fn_params(fn, values, env)) with_environment(env, [&] { value = fn_body(fn, span); });
    env_->shared_draws = env.shared_draws;
    return value;
  });
  open_fns_.pop_back();
  result.span = span;
  return result;
}

Value Elaborator::fn_body(const ast::Fn& fn, Span span) {
  const Value value = block(fn.body);
  return value.is_error() ? value : to_result(value, fn.result, span, fn.name.text);
}

// What a fn gives as its signature says, of several values each.
Value Elaborator::to_result(const Value& value, ast::TypeId id, Span span, std::string_view what) {
  const auto* types = std::get_if<ast::TupleType>(&tree()[id].node);
  if (types == nullptr) return to_declared(value, id, span, what);
  const auto wanted = tree().list(types->elements);
  if (value.kind != ValueKind::Tuple || value.elements.size() != wanted.size()) {
    reporter_.report<DiagKind::Mismatch>(value.span, std::to_string(wanted.size()) + " values",
                                         describe(value));
    return error(span);
  }
  Value result = value;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    result.elements[i] = to_declared(value.elements[i], wanted[i], span, what);
    if (result.elements[i].is_error()) return error(span);
  }
  return result;
}

namespace {

// The name of a size that stands alone in a type, or nullptr.
const ast::Name* plain_name(const ast::Module& tree, ast::ExprId id) {
  const auto* name = std::get_if<ast::NameRef>(&tree[id].node);
  return name == nullptr ? nullptr : &name->name;
}

}  // namespace

// Binds names that stand alone and mean no constant; what is bound already must be the same size.
bool Elaborator::bind_generic_sizes(const ast::ArrayType& type, const Value& arg, Scope& scope) {
  const Type shape = value_type(arg);
  if (type.is_any()) return true;
  const auto dims = tree().list(type.dims);
  if (dims.size() != shape.rank) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const ast::Name* name = plain_name(tree(), dims[i]);
    if (name == nullptr || env_->unit->names.contains(name->text)) continue;
    if (is_reserved_name(name->text)) {
      reporter_.report<DiagKind::BuiltinNameTaken>(name->span, name->text)
          .note("a size in the signature of a fn has a name of its own");
      return false;
    }
    const auto bound = scope.find(name->text);
    if (bound == scope.end()) {
      Symbol symbol;
      symbol.value = host(shape.dims[i], name->span);
      symbol.span = name->span;
      scope.emplace(name->text, symbol);
    } else if (!sizes_.proves_equal(bound->second.value.host, shape.dims[i])) {
      auto& diag = reporter_.report<DiagKind::GenericSizes>(
          arg.span, name->text, size_text(bound->second.value.host), size_text(shape.dims[i]));
      note_sizes(diag.note(name->span, "the size"), {&arg});
      return false;
    }
  }
  return true;
}

bool Elaborator::bind_fn_params(const ast::Fn& fn, const std::vector<Value>& args,
                                Environment& inner) {
  std::size_t next = 0;
  std::vector<std::pair<const ast::Param*, const Value*>> arrays;
  bool is_good = true;
  for (std::uint32_t i = 0; i < fn.params.count; ++i, ++next) {
    const ast::Module& tree = inner.unit->tree;
    const ast::Param& param = tree[tree.params.pool[fn.params.first + i]];
    const auto* array = std::get_if<ast::ArrayType>(&tree[param.type].node);
    if (array == nullptr) continue;
    bool has_shape = false;
    const std::size_t errors = reporter_.num_errors();
    with_environment(
        inner, [&] { has_shape = bind_generic_sizes(*array, args[next], inner.scopes.front()); });
    if (!has_shape && reporter_.num_errors() == errors) {
      const auto& text = inner.unit->source->text(tree[param.type].span);
      reporter_.report<DiagKind::Mismatch>(args[next].span, std::string(text),
                                           describe(args[next]));
    }
    is_good &= has_shape;
  }
  if (!is_good) return false;
  for (std::uint32_t i = 0; i < fn.params.count; ++i) {
    const ast::Module& tree = inner.unit->tree;
    const ast::Param& param = tree[tree.params.pool[fn.params.first + i]];
    Value value;
    with_environment(
        inner, [&] { value = to_declared(args[i], param.type, args[i].span, param.name.text); });
    if (value.is_error()) return false;
    Symbol symbol;
    symbol.value = shared(value, param.name.text);
    symbol.span = param.name.span;
    symbol.noun = "an argument";
    inner.scopes.front().insert_or_assign(param.name.text, symbol);
  }
  return true;
}

// A value as a type in a signature says; sizes in it are already bound. Whole numbers stay known to
// the host, as sizes may be made of them, and take the arithmetic of the type.
Value Elaborator::to_declared(const Value& value, ast::TypeId id, Span span,
                              std::string_view what) {
  const auto* array = std::get_if<ast::ArrayType>(&tree()[id].node);
  if (array != nullptr) {
    const std::size_t errors = reporter_.num_errors();
    Scope& scope = env_->scopes.front();
    if (!bind_generic_sizes(*array, value, scope)) {
      if (reporter_.num_errors() == errors) {
        reporter_.report<DiagKind::Mismatch>(
            value.span, "`" + std::string(env_->unit->source->text(tree()[id].span)) + "`",
            describe(value));
      }
      return error(span);
    }
  }
  if (array != nullptr && array->is_any()) {
    const auto element = dtype_of(array->element);
    return element && !value.is_error() ? coerce(value, *element) : error(span);
  }
  const auto type = type_of(id);
  if (!type || value.is_error()) return error(span);
  const bool is_number = value.is_host() && type->rank == 0;
  if (is_number && is_int(type->dtype) && pool().type(value.host) == HostType::Int) {
    Value made = coerce(value, type->dtype);
    const bool may_change = type->dtype.bits < 32 && !is_known_to_fit(value.host, type->dtype);
    if (made.is_error() || (may_change && !in_host_)) return made;
    Value number = value;
    number.declared = type->dtype;
    number.quotient.reset();
    number.remake.reset();
    return number;
  }
  if (is_number && in_host_ && can_coerce(value, type->dtype)) {
    if (is_bool(type->dtype)) return value;
    return host(is_int(type->dtype) ? to_int(value.host)
                                    : pool().cast(as_quotient(value).host, HostType::F64),
                value.span);
  }
  Value made = coerce(value, type->dtype);
  if (made.is_error()) return made;
  if (!same_shape(made.type, *type)) {
    auto& diag =
        reporter_.report<DiagKind::Mismatch>(value.span, type_text(*type), describe(value));
    note_sizes(diag.note("this is `" + std::string(what) + "`"), {&made});
    return error(span);
  }
  return made;
}

}  // namespace cinch::sema
