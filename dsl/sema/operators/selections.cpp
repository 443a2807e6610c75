// filter, nonzero, sorts, top_k, kth_largest, quantiles and searchsorted.
#include <limits>
#include <utility>

#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/operators/operators.h"

namespace cinch::sema {
using dsl::DiagKind;

Value Operators::filter_call(const CallArgs& args) {
  if (mode_.lambda_depth > 0)
    return mistake<DiagKind::NotInLambda>(args.span, "`" + args.name + "`");
  Value x = FOUND(all_.calls.vector_operand(args.positional[0], args.name));
  Value where = x;
  if (args.id == BuiltinId::filter) {
    if (!args.named.contains("where"))
      return mistake<DiagKind::MissingArgument>(args.span, args.name, "`where:`");
    where = FOUND(all_.calls.mask(args, x.type));
  } else {
    where = FOUND(conversions_.bool_value(x, "bools in `nonzero`"));
  }
  HostExprId limit;
  if (args.named.contains("limit")) {
    limit = FOUND(all_.calls.named_size(args, "limit"));
  }
  return filtered(args, x, where, limit);
}

Value Operators::filtered(const CallArgs& args, const Value& x, const Value& where,
                          HostExprId limit) {
  const HostExprId len = x.type.dims[0];
  const auto found = FOUND(all_.counts.count_of_mask(where, limit, len, args.span));
  const std::uint32_t index = found;
  const HostExprId count = pool().count(index, out_.info.counts[index].bound);
  const bool is_filter = args.id != BuiltinId::nonzero;
  std::vector<ExprId> operands{x.expr};
  if (is_filter) operands.push_back(where.expr);
  Value result = build_.builtin(is_filter ? BuiltinId::filter : BuiltinId::nonzero,
                                vector_type(is_filter ? x.type.dtype : kU32, count),
                                std::move(operands), args.span, [&](Expr& e) {
                                  e.index = index;
                                  e.size = limit;
                                });
  result.facts = is_filter ? x.facts : IndexFacts{true, true, len};
  const auto sent = all_.counts.sent_count(all_.counts.count_key(where, limit));
  return sent ? all_.counts.as_sent(result, *sent, args) : result;
}

Value Operators::sort_call(const CallArgs& args) {
  Value x = FOUND(all_.calls.array_operand(args.positional[0], args.name));
  const auto along = all_.calls.line_axis(args, x);
  if (!along || !is_known_line(x, *along, args.name)) return error_value(args.span);
  std::vector<ExprId> operands{x.expr};
  Type type = x.type;
  IndexFacts facts;
  if (args.id == BuiltinId::argsort) {
    type.dtype = kU32;
    if (type.rank == 1) facts = {true, false, x.type.dims[0]};
    if (type.rank == 2) facts.limit = x.type.dims[*along];
    facts.unique_in_rows = type.rank == 2 && *along == 1;
  } else if (args.id == BuiltinId::sort) {
    facts = x.facts;
    facts.unique_in_rows = facts.unique_in_rows && *along == 1;
  } else {
    Value values = FOUND(all_.calls.array_operand(args.positional[1], args.name));
    if (!sizes_.same_shape(values.type, x.type)) {
      return cannot_combine(args.name, x, values, args.span, false);
    }
    operands.push_back(values.expr);
    type = values.type;
    facts = values.facts;
    facts.ascending = false;
    facts.unique_in_rows = facts.unique_in_rows && *along == 1;
  }
  const bool is_descending = all_.calls.flag(args, "descending");
  if (args.id == BuiltinId::sort) facts.ascending = facts.unique && !is_descending;
  Value result = build_.builtin(args.id, type, std::move(operands), args.span, [&](Expr& e) {
    e.axis = static_cast<std::int8_t>(*along);
    e.descending = is_descending;
  });
  result.facts = facts;
  return result;
}

Value Operators::top_k_call(const CallArgs& args) {
  const Value given = all_.calls.array_operand(args.positional[0], args.name);
  std::optional<HostExprId> k;
  if (args.id != BuiltinId::median) k = FOUND(all_.calls.size_arg(args.positional[1], args.name));
  if (given.is_error()) return error_value(args.span);
  const auto of_all = [&](const Value& all) {
    return build_.behind_filter(all, args.span,
                                [&](const Value& x) { return top_k_of(args, x, k); });
  };
  if (!args.named.contains("where")) return of_all(given);
  if (args.id == BuiltinId::median) return ranked_where(args, given, {}, of_all);
  const Value mask = FOUND(all_.calls.mask(args, given.type));
  return of_all(FOUND(or_least(given, mask, args.span)));
}

// Elements that the mask leaves out rank below all others.
Value Operators::or_least(const Value& x, const Value& mask, Span span) {
  const DType type = x.type.dtype;
  const HostExprId least = is_float(type)
                               ? pool().const_f64(-std::numeric_limits<double>::infinity())
                           : is_bool(type) ? pool().const_bool(false)
                                           : pool().const_int(min_int(type));
  const Value none = FOUND(conversions_.coerce(host_value(least, span), type));
  return scalar_op(ScalarOp::select, {mask, x, none}, span, "where:");
}

// Selection works along rows, or on a vector.
std::optional<int> Operators::ranked_axis(const CallArgs& args, const Value& x) {
  const auto along = FOUND(all_.calls.axis(args, x));
  if (along == 0) {
    reporter_
        .report<DiagKind::BadType>(args.named.find("axis")->second->span, "`axis: 1`, rows",
                                   "`axis: 0`")
        .note("of the columns of a matrix m: `" + args.name + "(transpose(m), " +
              (args.id == BuiltinId::median     ? ""
               : args.id == BuiltinId::quantile ? "q, "
                                                : "k, ") +
              "axis: 1)`");
    return std::nullopt;
  }
  if (!is_known_line(x, along, args.name)) return std::nullopt;
  if (x.type.rank == 1 || along >= 0) return along;
  reporter_.report<DiagKind::NeedsVector>(x.span, args.name, text_.describe(x))
      .note("of a matrix: per row, with `axis: 1`");
  return std::nullopt;
}

Value Operators::kth_largest_node(const Value& x, int along, HostExprId k, Span span) {
  const Type type =
      x.type.rank == 2 ? reduced_type(x.type, 1, x.type.dtype) : scalar_type(x.type.dtype);
  return build_.builtin(BuiltinId::kth_largest, type, {x.expr}, span, [&](Expr& e) {
    e.size = k;
    e.axis = static_cast<std::int8_t>(along);
  });
}

// Without `k` the median: of so many elements the lower middle one.
Value Operators::top_k_of(const CallArgs& args, const Value& x, std::optional<HostExprId> given_k) {
  const auto along = FOUND(ranked_axis(args, x));
  const HostExprId len = x.type.dims[x.type.rank - 1];
  const bool is_possible =
      !given_k ||
      build_.require_at_most(
          *given_k, len, "`" + args.name + "` takes at most " + sizes_.size_text(len) + " of them",
          tree()[args.positional[1]].span);
  if (!is_possible) return error_value(args.span);
  const HostExprId lower_half =
      pool().div(pool().sub(len, pool().const_int(1)), pool().const_int(2));
  const HostExprId k = given_k.value_or(pool().sub(len, lower_half));
  if (args.id != BuiltinId::top_k) return kth_largest_node(x, along, k, args.span);
  Type type = vector_type(kU32, k);
  if (x.type.rank == 2) type = matrix_type(kU32, x.type.dims[0], k);
  Value result = build_.builtin(args.id, type, {x.expr}, args.span, [&](Expr& e) {
    e.size = k;
    e.axis = static_cast<std::int8_t>(along);
  });
  result.facts.limit = len;
  result.facts.unique = result.facts.ascending = x.type.rank == 1;
  result.facts.unique_in_rows = x.type.rank == 2;
  return result;
}

// A median or quantile of some elements: of a vector those are filtered first; rows are sorted, so
// that the others are behind them.
Value Operators::ranked_where(const CallArgs& args, const Value& x, HostExprId q,
                              const std::function<Value(const Value&)>& of_all) {
  const auto along = FOUND(ranked_axis(args, x));
  Value mask = FOUND(all_.calls.mask(args, x.type));
  if (x.type.rank == 1) {
    if (mode_.lambda_depth > 0)
      return mistake<DiagKind::NotInLambda>(args.span, "`where:` of `" + args.name + "`");
    return of_all(FOUND(filtered(args, x, repeated(mask, x.type, args.span), {})));
  }
  mask = repeated(mask, x.type, args.span);
  return build_.builtin(args.id, reduced_type(x.type, along, x.type.dtype), {x.expr, mask.expr},
                        args.span, [&](Expr& e) {
                          e.size = q;
                          e.axis = static_cast<std::int8_t>(along);
                        });
}

Value Operators::quantile_call(const CallArgs& args) {
  const Value given =
      conversions_.as_float(all_.calls.array_operand(args.positional[0], args.name), args.name);
  const Span q_span = tree()[args.positional[1]].span;
  const auto q = all_.numbers.host_float(args.positional[1], "the place in `quantile`");
  if (given.is_error() || !q) return error_value(args.span);
  const HostExprId begins = pool().make(HostOp::Ge, *q, pool().const_f64(0));
  const HostExprId ends = pool().make(HostOp::Le, *q, pool().const_f64(1));
  if (!build_.require(pool().make(HostOp::And, begins, ends),
                      "the place in `quantile` is from 0 to 1", q_span))
    return error_value(args.span);
  const auto of_all = [&](const Value& all) {
    return build_.behind_filter(all, args.span,
                                [&](const Value& x) { return quantile_of(args, x, *q); });
  };
  return args.named.contains("where") ? ranked_where(args, given, *q, of_all) : of_all(given);
}

Value Operators::quantile_of(const CallArgs& args, const Value& x, HostExprId q) {
  const auto along = FOUND(ranked_axis(args, x));
  const HostExprId len = x.type.dims[x.type.rank - 1], one = pool().const_int(1);
  const HostExprId last = pool().max(pool().sub(len, one), pool().const_int(0));
  const HostExprId place = pool().mul(q, pool().cast(last, HostType::F64));
  const HostExprId whole = pool().make(HostOp::Floor, place);
  const HostExprId below = pool().cast(whole, HostType::Int);
  const HostExprId above = pool().min(pool().add(below, one), last);
  const Value low = kth_largest_node(x, along, pool().sub(len, below), args.span);
  const Value high = kth_largest_node(x, along, pool().sub(len, above), args.span);
  Expr part{ExprKind::HostSize, scalar_type(x.type.dtype), args.span};
  part.size = pool().sub(place, whole);
  const Value share = build_.typed(std::move(part));
  const auto op = [&](ScalarOp kind, std::vector<Value> operands) {
    return scalar_op(kind, std::move(operands), args.span, args.name);
  };
  const Value step = op(ScalarOp::mul, {op(ScalarOp::sub, {high, low}), share});
  const Value zero = conversions_.coerce(host_value(pool().const_int(0), args.span), x.type.dtype);
  // Without a share the upper neighbour, which may be infinite, has no part in it.
  return op(ScalarOp::select,
            {op(ScalarOp::eq, {share, zero}), low, op(ScalarOp::add, {low, step})});
}

Value Operators::searchsorted_call(const CallArgs& args) {
  std::vector<Value> both = conversions_.unmet_together(
      {all_.exprs.expr(args.positional[0]), all_.exprs.expr(args.positional[1])});
  if (both[0].is_error() || both[1].is_error()) return error_value(args.span);
  Keep side = Keep::First;
  if (const auto at = args.named.find("side"); at != args.named.end()) {
    const auto word = FOUND(all_.calls.word(at->second->value, {"left", "right"}));
    if (word == "right") side = Keep::Last;
  }
  const auto dtype = types_.meet(both[0], both[1]);
  if (!dtype) return cannot_combine(args.name, both[0], both[1], args.span);
  for (Value& each : both) {
    each = FOUND(all_.calls.operand_of(conversions_.coerce(each, *dtype)));
  }
  if (both[0].type.rank != 1)
    return mistake<DiagKind::NeedsVector>(both[0].span, args.name, text_.describe(both[0]));
  Type type = both[1].type;
  type.dtype = kU32;
  Value result = build_.builtin(args.id, type, {both[0].expr, both[1].expr}, args.span,
                                [&](Expr& e) { e.keep = side; });
  result.facts.limit = pool().add(both[0].type.dims[0], pool().const_int(1));
  return result;
}

// Broadcasting, rows, and reshapes of values.

bool Operators::is_row_of(const Type& a, const Type& b) {
  const Type& vector = a.rank == 1 ? a : b;
  const Type& matrix = a.rank == 1 ? b : a;
  return vector.rank == 1 && matrix.rank == 2 && !is_by_rows() &&
         prover_.proves_equal(vector.dims[0], matrix.dims[1]);
}

Value Operators::as_row(const Value& value, const Type& shape) {
  if (!value.is_typed() || value.type.rank != 1 || shape.rank != 2) return value;
  const HostExprId one = pool().const_int(1);
  return reshaped(value, matrix_type(value.type.dtype, one, value.type.dims[0]), value.span);
}

// A vector beside a matrix becomes a row of it, which is repeated.
Type Operators::with_rank_of(const Type& type, const Type& other) {
  if (type.rank != 1 || other.rank != 2 || is_by_rows()) return type;
  return matrix_type(type.dtype, pool().const_int(1), type.dims[0]);
}

// The common shape of two, if each dimension agrees or is 1.
std::optional<Type> Operators::joined(const Type& a, const Type& b) {
  const Type other = with_rank_of(b, a);
  Type shape = with_rank_of(a, b);
  if (shape.rank != other.rank) return std::nullopt;
  for (int i = 0; i < shape.rank; ++i) {
    if (sizes_.is_one(other.dims[i]) || prover_.proves_equal(other.dims[i], shape.dims[i])) {
      continue;
    }
    if (!sizes_.is_one(shape.dims[i])) return std::nullopt;
    shape.dims[i] = other.dims[i];
  }
  return shape;
}

std::optional<Type> Operators::broadcast(std::span<const Value> args, Span span,
                                         std::string_view name) {
  Type shape = scalar_type(kF32);
  const Value* shaped = nullptr;
  for (const Value& arg : args) {
    const Type type = types_.value_type(arg);
    if (type.rank == 0) continue;
    if (shaped == nullptr) {
      shape = type;
      shaped = &arg;
      continue;
    }
    const auto both = joined(shape, type);
    if (!both) {
      cannot_combine(name, *shaped, arg, span);
      return std::nullopt;
    }
    shape = *both;
  }
  return shape;
}

// The numbers of elements are known to agree.
Value Operators::reshaped(const Value& value, const Type& type, Span span) {
  if (value.is_error() || sizes_.same_shape(value.type, type)) return value;
  Type shape = type;
  shape.dtype = value.type.dtype;
  return build_.builtin(BuiltinId::reshape, shape, {value.expr}, span);
}

Value Operators::repeated(const Value& value, const Type& shape, Span span) {
  if (value.is_error() || sizes_.same_shape(value.type, shape)) return value;
  Type type = shape;
  type.dtype = value.type.dtype;
  return build_.builtin(BuiltinId::fill, type, {as_row(value, shape).expr}, span);
}

}  // namespace cinch::sema
