// Sizes in signatures, and values in declared types.
#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/expressions/expressions.h"
#include "runtime/core/mapped.h"

namespace cinch::sema {
using dsl::DiagKind;

Value Calls::call_fn(const DeclRef& decl, const ast::Fn& fn, const ast::Call& node, Span span) {
  const auto params = decl.unit->tree.params.nodes.empty() ? 0u : fn.params.count;
  const CallArgs args = sort_args(node, fn.name.text, span, {}, params, params);
  if (args.is_bad) return error_value(span);
  std::vector<Value> values;
  bool has_array = false;
  for (ast::ExprId id : args.positional) {
    values.push_back(all_.exprs.expr(id));
    if (values.back().is_error()) return error_value(span);
    const bool is_value = values.back().is_typed() || values.back().kind == ValueKind::Table;
    has_array |= is_value && types_.value_type(values.back()).rank > 0;
  }
  if (!has_array || !is_of_scalars(decl.unit->tree, fn)) return inline_fn(decl, fn, values, span);
  const auto* several = std::get_if<ast::TupleType>(&decl.unit->tree[fn.result].node);
  if (several == nullptr) return map_fn(decl, fn, values, {}, span);
  return map_each(decl, fn, values, several->elements.count, span);
}

// Maps a fn with several results over arrays: one array for each result. All of them use the same
// draws.
Value Calls::map_each(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
                      std::size_t num_results, Span span) {
  for (Value& value : values) {
    if (value.is_typed() && value.type.rank > 0) value = build_.shared(value, "operand");
  }
  Instance* const drawn = env_->draw_instance;
  const std::uint32_t shared_draws = env_->shared_draws;
  const std::uint32_t own_draws = drawn == nullptr ? 0 : drawn->own_draws;
  Value results{.span = span, .kind = ValueKind::Tuple};
  for (std::size_t i = 0; i < num_results; ++i) {
    env_->shared_draws = shared_draws;
    if (drawn != nullptr) drawn->own_draws = own_draws;
    results.elements.push_back(map_fn(decl, fn, values, i, span));
    if (results.elements.back().is_error()) return error_value(span);
  }
  return results;
}

bool Calls::is_of_scalars(const ast::Module& tree, const ast::Fn& fn) {
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

// Maps a fn of scalars over arrays, as `map` does with a lambda. `result` selects one of several
// results.
Value Calls::map_fn(const DeclRef& decl, const ast::Fn& fn, std::vector<Value> values,
                    std::optional<std::size_t> result, Span span) {
  const ast::Module& tree = decl.unit->tree;
  const auto params = tree.list(fn.params);
  Environment types{decl.unit, nullptr, {Scope{}}};
  Expr made{ExprKind::Lambda, {}, span};
  std::vector<Value> arrays;
  const ModeScope scope(mode_);
  ++mode_.lambda_depth;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (types_.value_type(values[i]).rank == 0) continue;
    std::optional<DType> dtype;
    all_.exprs.with_environment(types,
                                [&] { dtype = conversions_.dtype_of(tree[params[i]].type); });
    const Value array = dtype ? conversions_.coerce(values[i], *dtype) : error_value(span);
    if (array.is_error()) break;
    arrays.push_back(array);
    const Type type = scalar_type(array.type.dtype);
    const VarId var = build_.add_var(tree[params[i]].name.text, type, false, values[i].span);
    made.params.push_back(var);
    values[i] = build_.read_var(var, values[i].span);
  }
  const bool has_arrays = std::ranges::none_of(
      values, [&](const Value& value) { return types_.value_type(value).rank > 0; });
  const auto applied = [&] {
    const Value given = inline_fn(decl, fn, values, span);
    const bool is_one = !result || given.is_error();
    return conversions_.materialize(is_one ? given : given.elements[*result]);
  };
  const Value body = has_arrays ? build_.in_block(span, applied) : error_value(span);
  const auto shape = all_.operators.broadcast(arrays, span, fn.name.text);
  if (body.is_error() || !shape) return error_value(span);
  made.type = body.type;
  made.args = {body.expr};
  auto operands = mapped<ExprId>(
      arrays, [&](const Value& array) { return all_.operators.as_row(array, *shape).expr; });
  operands.push_back(build_.typed(std::move(made)).expr);
  Type type = *shape;
  type.dtype = body.type.dtype;
  return build_.builtin(BuiltinId::map, type, std::move(operands), span);
}

Value Calls::inline_fn(const DeclRef& decl, const ast::Fn& fn, const std::vector<Value>& values,
                       Span span) {
  for (const Value& value : values) {
    if (is_by_rows() && value.is_typed() && value.type.rank == 2) {
      return all_.items.not_by_rows("a call of `" + fn.name.text + "`", span);
    }
  }
  if (std::find(open_fns_.begin(), open_fns_.end(), decl) != open_fns_.end())
    return error_value(reporter_.report<DiagKind::RecursiveFn>(span, fn.name.text)
                           .note(fn.name.span, "declared here"));
  const GrowthLimits::Use use(all_.growth, span);
  open_fns_.push_back(decl);
  Value result = build_.in_block(span, [&] {
    Environment env{decl.unit, nullptr, {Scope{}}};
    // Shared draws of a fn count as draws of the method that calls it.
    env.shared_draws = env_->shared_draws;
    env.method = env_->method;
    env.draw_instance = env_->draw_instance;
    Value value = error_value(span);
    if (bind_fn_params(fn, values, env))
      all_.exprs.with_environment(env, [&] { value = fn_body(fn, span); });
    env_->shared_draws = env.shared_draws;
    return value;
  });
  open_fns_.pop_back();
  result.span = span;
  return result;
}

Value Calls::fn_body(const ast::Fn& fn, Span span) {
  const Value value = all_.exprs.block(fn.body);
  return value.is_error() ? value : to_result(value, fn.result, span, fn.name.text);
}

void Calls::check_fn(const DeclRef& decl) {
  const auto& fn = std::get<ast::Fn>((*decl).node);
  const GrowthLimits::Use use(all_.growth, fn.name.span);
  const ModeScope scope(mode_);
  mode_.is_check = true;
  mode_.is_of_fn = true;
  mode_.body = BodyKind::Encode;
  open_fns_.push_back(decl);
  Environment env{decl.unit, nullptr, {Scope{}}};
  std::vector<StmtId> stmts;
  build_.collect_into(&stmts);
  all_.exprs.with_environment(env, [&] {
    const auto each_param = [&](auto&& handle) {
      for (std::uint32_t i = 0; i < fn.params.count; ++i) {
        handle(tree()[tree().params.pool[fn.params.first + i]]);
      }
    };
    each_param([&](const ast::Param& param) { declare_generic_sizes(param); });
    each_param([&](const ast::Param& param) {
      const auto type = checked_type(param);
      Symbol symbol{.span = param.name.span, .noun = "an argument"};
      if (type) {
        symbol.value = build_.read_var(build_.add_var(param.name.text, *type, false, symbol.span),
                                       symbol.span);
        // Sizes may use whole numbers.
        if (type->rank == 0 && is_int(type->dtype)) {
          const HostExprId leaf = sizes_.opaque_number(HostType::Int);
          sizes_.name(leaf, param.name.text, param.name.span);
          symbol.value = host_value(leaf, symbol.span);
          symbol.value.declared = type->dtype;
        }
      }
      all_.exprs.declare(param.name, symbol);
    });
    fn_body(fn, fn.name.span);
  });
  build_.collect_into(nullptr);
  open_fns_.pop_back();
}

CheckedCall Calls::call_alone(const DeclRef& decl, DType element,
                              const std::vector<FnArgument>& arguments, Span span) {
  const ModeScope scope(mode_);
  mode_.body = BodyKind::Encode;
  mode_.element = element;
  CheckedCall call;
  Environment env{decl.unit, nullptr, {Scope{}}};
  build_.collect_into(&call.stmts);
  all_.exprs.with_environment(env, [&] {
    std::vector<Value> values;
    for (const FnArgument& argument : arguments) {
      if (argument.number) {
        values.push_back(host_value(argument.number, span));
        continue;
      }
      call.params.push_back(build_.add_var("argument", argument.type, false, span));
      values.push_back(build_.read_var(call.params.back(), span));
    }
    const Value result = inline_fn(decl, std::get<ast::Fn>((*decl).node), values, span);
    const bool is_one = result.kind != ValueKind::Tuple;
    for (const Value& each : is_one ? std::vector{result} : result.elements) {
      call.results.push_back(conversions_.materialize(each).expr);
    }
  });
  build_.collect_into(nullptr);
  call.program = std::move(out_);
  return call;
}

Value Calls::to_result(const Value& value, ast::TypeId id, Span span, std::string_view what) {
  const auto* types = std::get_if<ast::TupleType>(&tree()[id].node);
  if (types == nullptr) return to_declared(value, id, span, what);
  const auto wanted = tree().list(types->elements);
  if (value.kind != ValueKind::Tuple || value.elements.size() != wanted.size())
    return mistake<DiagKind::Mismatch>(value.span, std::to_string(wanted.size()) + " values",
                                       text_.describe(value));
  Value result = value;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    result.elements[i] = to_declared(value.elements[i], wanted[i], span, what);
    if (result.elements[i].is_error()) return error_value(span);
  }
  return result;
}

// Binds sizes that are plain names and no constants. A size that is bound already must be the same.
bool Calls::bind_generic_sizes(const ast::ArrayType& type, const Value& arg, Scope& scope) {
  const Type shape = types_.value_type(arg);
  if (type.is_any()) return true;
  const auto dims = tree().list(type.dims);
  if (dims.size() != shape.rank) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto* ref = std::get_if<ast::NameRef>(&tree()[dims[i]].node);
    if (ref == nullptr || env_->unit->names.contains(ref->name.text)) continue;
    const ast::Name* name = &ref->name;
    if (is_reserved_name(name->text)) {
      reporter_.report<DiagKind::BuiltinNameTaken>(name->span, name->text)
          .note("a size in the signature of a fn has a name of its own");
      return false;
    }
    const auto bound = scope.find(name->text);
    if (bound == scope.end()) {
      Symbol symbol{.value = host_value(shape.dims[i], name->span), .span = name->span};
      scope.emplace(name->text, symbol);
    } else if (!prover_.proves_equal(bound->second.value.host, shape.dims[i])) {
      auto& diag = reporter_.report<DiagKind::GenericSizes>(
          arg.span, name->text, sizes_.size_text(bound->second.value.host),
          sizes_.size_text(shape.dims[i]));
      text_.note_sizes(diag.note(name->span, "the size"), {&arg});
      return false;
    }
  }
  return true;
}

bool Calls::bind_fn_params(const ast::Fn& fn, const std::vector<Value>& args, Environment& inner) {
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
    all_.exprs.with_environment(
        inner, [&] { has_shape = bind_generic_sizes(*array, args[next], inner.scopes.front()); });
    if (!has_shape && reporter_.num_errors() == errors) {
      const auto& text = inner.unit->source->text(tree[param.type].span);
      reporter_.report<DiagKind::Mismatch>(args[next].span, std::string(text),
                                           text_.describe(args[next]));
    }
    is_good &= has_shape;
  }
  if (!is_good) return false;
  for (std::uint32_t i = 0; i < fn.params.count; ++i) {
    const ast::Module& tree = inner.unit->tree;
    const ast::Param& param = tree[tree.params.pool[fn.params.first + i]];
    Value value;
    all_.exprs.with_environment(
        inner, [&] { value = to_declared(args[i], param.type, args[i].span, param.name.text); });
    if (value.is_error()) return false;
    inner.scopes.front().insert_or_assign(param.name.text,
                                          Symbol{.value = build_.shared(value, param.name.text),
                                                 .span = param.name.span,
                                                 .noun = "an argument"});
  }
  return true;
}

// Converts a value to a type in a signature, whose sizes are already bound. The host still knows
// whole numbers, because sizes may use them, but they take the arithmetic of the type.
Value Calls::to_declared(const Value& value, ast::TypeId id, Span span, std::string_view what) {
  const auto* array = std::get_if<ast::ArrayType>(&tree()[id].node);
  if (array != nullptr) {
    const std::size_t errors = reporter_.num_errors();
    Scope& scope = env_->scopes.front();
    if (!bind_generic_sizes(*array, value, scope)) {
      if (reporter_.num_errors() == errors) {
        reporter_.report<DiagKind::Mismatch>(
            value.span, "`" + std::string(env_->unit->source->text(tree()[id].span)) + "`",
            text_.describe(value));
      }
      return error_value(span);
    }
  }
  if (array != nullptr && array->is_any()) {
    const auto element = conversions_.dtype_of(array->element);
    return element && !value.is_error() ? conversions_.coerce(value, *element) : error_value(span);
  }
  const auto type = conversions_.type_of(id);
  if (!type || value.is_error()) return error_value(span);
  const bool is_number = value.is_host() && type->rank == 0;
  if (is_number && is_int(type->dtype) && pool().type(value.host) == HostType::Int) {
    Value made = conversions_.coerce(value, type->dtype);
    const bool may_change =
        type->dtype.bits < 32 && !types_.is_known_to_fit(value.host, type->dtype);
    if (made.is_error() || (may_change && !mode_.in_host)) return made;
    Value number = value;
    if (!mode_.element) number.declared = type->dtype;
    number.quotient.reset();
    number.remake.reset();
    return number;
  }
  if (is_number && mode_.in_host && types_.can_coerce(value, type->dtype)) {
    if (is_bool(type->dtype)) return value;
    return host_value(is_int(type->dtype) ? pool().cast(value.host, HostType::Int)
                                          : pool().cast(as_quotient(value).host, HostType::F64),
                      value.span);
  }
  Value made = FOUND(conversions_.coerce(value, type->dtype));
  if (!sizes_.same_shape(made.type, *type)) {
    auto& diag = reporter_.report<DiagKind::Mismatch>(value.span, sizes_.type_text(*type),
                                                      text_.describe(value));
    text_.note_sizes(diag.note("this is `" + std::string(what) + "`"), {&made});
    return error_value(span);
  }
  return made;
}

void Calls::declare_generic_sizes(const ast::Param& param) {
  const auto* array = std::get_if<ast::ArrayType>(&tree()[param.type].node);
  if (array == nullptr) return;
  for (ast::ExprId dim : tree().list(array->dims)) {
    const auto* name = std::get_if<ast::NameRef>(&tree()[dim].node);
    if (name == nullptr || env_->unit->names.contains(name->name.text)) continue;
    if (is_reserved_name(name->name.text)) {
      reporter_.report<DiagKind::BuiltinNameTaken>(name->name.span, name->name.text)
          .note("a size in the signature of a fn has a name of its own");
      continue;
    }
    if (env_->scopes.front().contains(name->name.text)) continue;
    const HostExprId leaf = sizes_.opaque_number(HostType::Int);
    prover_.set_nonnegative(leaf);
    sizes_.name(leaf, name->name.text, name->name.span);
    Symbol symbol{.value = host_value(leaf, name->name.span), .span = name->name.span};
    env_->scopes.front().emplace(name->name.text, symbol);
  }
}

// An array of any sizes is checked as a vector, which has the most operators, and all of them get
// one size.
std::optional<Type> Calls::checked_type(const ast::Param& param) {
  const auto* array = std::get_if<ast::ArrayType>(&tree()[param.type].node);
  if (array == nullptr || !array->is_any()) return conversions_.type_of(param.type);
  const auto element = FOUND(conversions_.dtype_of(array->element));
  Symbol& size = env_->scopes.front()[".."];
  if (!size.value.host) {
    size.value = host_value(sizes_.opaque_number(HostType::Int), param.name.span);
    prover_.set_nonnegative(size.value.host);
    sizes_.name(size.value.host, "..", param.name.span);
  }
  return vector_type(element, size.value.host);
}

}  // namespace cinch::sema
