// filter, nonzero, sorts, top_k and kth_largest.
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
  const HostExprId len = x.type.dims[0];
  const auto found = FOUND(all_.counts.count_of_mask(where, limit, len, args.span));
  const std::uint32_t index = found;
  const HostExprId count = pool().count(index, out_.info.counts[index].bound);
  const bool is_filter = args.id == BuiltinId::filter;
  std::vector<ExprId> operands{x.expr};
  if (is_filter) operands.push_back(where.expr);
  Value result = build_.builtin(args.id, vector_type(is_filter ? x.type.dtype : kU32, count),
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
  return build_.behind_filter(given, args.span,
                              [&](const Value& x) { return top_k_of(args, x, k); });
}

// Without `k` the median: of so many elements the lower middle one.
Value Operators::top_k_of(const CallArgs& args, const Value& x, std::optional<HostExprId> given_k) {
  const auto along = FOUND(all_.calls.axis(args, x));
  if (along == 0)
    return error_value(
        reporter_
            .report<DiagKind::BadType>(args.named.find("axis")->second->span, "`axis: 1`, rows",
                                       "`axis: 0`")
            .note("of the columns of a matrix m: `" + args.name + "(transpose(m), k, axis: 1)`"));
  if (!is_known_line(x, along, args.name)) return error_value(args.span);
  if (x.type.rank == 2 && along < 0)
    return error_value(reporter_.report<DiagKind::NeedsVector>(x.span, args.name, text_.describe(x))
                           .note("of a matrix: per row, with `axis: 1`"));
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
  const BuiltinId id = given_k ? args.id : BuiltinId::kth_largest;
  Type type = vector_type(kU32, k);
  if (x.type.rank == 2) type = matrix_type(kU32, x.type.dims[0], k);
  if (id == BuiltinId::kth_largest) {
    type = x.type.rank == 2 ? reduced_type(x.type, 1, x.type.dtype) : scalar_type(x.type.dtype);
  }
  Value result = build_.builtin(id, type, {x.expr}, args.span, [&](Expr& e) {
    e.size = k;
    e.axis = static_cast<std::int8_t>(along);
  });
  if (id == BuiltinId::top_k) {
    result.facts.limit = len;
    result.facts.unique = result.facts.ascending = x.type.rank == 1;
    result.facts.unique_in_rows = x.type.rank == 2;
  }
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
