// Exact numbers in integer types: quotients rounded down, and the bits of numbers that may be
// negative.
#include "dsl/sema/types/exact_numbers.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

Value ExactNumbers::floor_div_of(Value a, Value b, const std::string& name, Span span) {
  if (a.is_error() || b.is_error()) return error_value(span);
  const auto apply = [&](ScalarOp op, std::vector<Value> operands) {
    return all_.scalars.scalar_op(op, std::move(operands), span, name);
  };
  if (a.is_typed()) a = build_.shared(a, "dividend");
  if (b.is_typed()) b = build_.shared(b, "divisor");
  Value down = without_quotient(apply(ScalarOp::div, {a, b}));
  const Value rest = apply(ScalarOp::mod, {a, b});
  if (down.is_error() || rest.is_error()) return error_value(span);
  if (types_.is_real(down)) return all_.scalars.cannot_combine(name, a, b, span);
  const auto is_natural = [&](const Value& v) {
    if (v.is_typed()) return is_unsigned_int(v.type.dtype);
    return v.is_host() && !v.declared && prover_.proves_nonnegative(v.host);
  };
  if (is_natural(a) && is_natural(b)) return down;
  const Value zero = host_value(pool().const_int(0), span),
              one = host_value(pool().const_int(1), span);
  const Value is_rest = apply(ScalarOp::ne, {rest, zero});
  const Value is_positive = apply(ScalarOp::gt, {rest, zero});
  const Value differs = apply(ScalarOp::ne, {is_positive, apply(ScalarOp::gt, {b, zero})});
  const Value below = apply(ScalarOp::sub, {down, one});
  Value result =
      apply(ScalarOp::select, {apply(ScalarOp::bit_and, {is_rest, differs}), below, down});
  result.quotient.reset();
  return result;
}

// Was an exact number computed in a signed type, with no constant that is known to be too small for
// this type, and with nothing to recompute its low bits?
bool ExactNumbers::is_only_signed(const Value& value, DType type) const {
  if (!value.is_typed() || !value.is_exact || !is_signed_int(value.type.dtype)) return false;
  if (value.remake != nullptr && value.remake->keeps_low_bits) return false;
  return std::ranges::all_of(value.chosen, [&](HostExprId number) {
    return fits(pool().const_value(number).as_int(), type);
  });
}

Value ExactNumbers::signed_low_bits(const Value& value, DType type) {
  Value made = conversions_.convert(conversions_.materialize(value), kI64, value.span);
  if (type.bits < 64) {
    const HostExprId all = pool().const_int(static_cast<std::int64_t>(max_int(type)));
    made = all_.scalars.typed_scalar_op(ScalarOp::bit_and, {made, host_value(all, value.span)},
                                        value.span, "&");
    return conversions_.convert(made, type, value.span);
  }
  Expr bits{ExprKind::Bitcast, made.type, value.span};
  bits.type.dtype = type;
  bits.args = {made.expr};
  return build_.typed(std::move(bits));
}

Value ExactNumbers::as_low_bits(const Value& value, DType type) {
  if (is_unsigned_int(type) && is_only_signed(value, type)) return signed_low_bits(value, type);
  if (!is_unsigned_int(type) || !types_.may_be_negative(value)) return value;
  const bool is_wide = type.bits == 64;
  Expr size{ExprKind::HostSize, scalar_type(is_wide ? kI64 : type), value.span};
  size.size = value.host;
  if (!is_wide) {
    const HostExprId all = pool().const_int(static_cast<std::int64_t>(max_int(type)));
    size.size = pool().make(HostOp::BitAnd, value.host, all);
    return build_.typed(std::move(size));
  }
  Expr bits{ExprKind::Bitcast, scalar_type(type), value.span};
  bits.args = {build_.typed(std::move(size)).expr};
  return build_.typed(std::move(bits));
}

Value ExactNumbers::as_mask(const Value& value, DType type) {
  const bool is_table = value.kind == ValueKind::Table;
  if (!is_unsigned_int(type) || holds_big(value) || (!is_table && !value.is_host())) return value;
  const std::int64_t least = min_int(make_int(type.bits).value_or(kI64));
  // A u64 is stored as a literal of 2^63 or more is.
  const auto is_set = [&](HostExprId& id) {
    if (!pool().is_const(id) || pool().type(id) != HostType::Int) return false;
    const std::int64_t number = pool().const_value(id).as_int();
    if (number >= 0 || number < least) return false;
    const auto bits = static_cast<std::uint64_t>(number) & max_int(type);
    id = pool().const_int(static_cast<std::int64_t>(bits));
    return type.bits == 64;
  };
  Value mask = value;
  if (!is_table) {
    mask.is_big = is_set(mask.host);
    return mask;
  }
  for (std::size_t i = 0; i < mask.table.size(); ++i) mask.big_elements[i] = is_set(mask.table[i]);
  return mask;
}

Value ExactNumbers::narrow_bits(const Value& value, DType type) {
  const DType wide = arithmetic_type(type);
  const Span span = value.span;
  if (!conversions_.is_every_choice_in(value, type)) return error_value(span);
  const Value all = conversions_.coerce(value, wide);
  const auto apply = [&](ScalarOp op, const Value& made, std::int64_t number) {
    return all_.scalars.scalar_op(op, {made, host_value(pool().const_int(number), span)}, span,
                                  "|=");
  };
  if (is_unsigned_int(type)) {
    const auto mask = static_cast<std::int64_t>(max_int(type));
    return conversions_.convert(apply(ScalarOp::bit_and, all, mask), type, span);
  }
  const std::int64_t above = wide.bits - type.bits;
  return conversions_.convert(apply(ScalarOp::shr, apply(ScalarOp::shl, all, above), above), type,
                              span);
}

}  // namespace cinch::sema
