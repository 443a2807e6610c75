// Exact numbers in integer types: quotients rounded down, and the bits of what may be negative.
#include "dsl/sema/elaborator.h"

namespace cinch::sema {

// The quotient rounded down, made of what rounds toward zero and what that leaves.
Value Elaborator::floor_div_call(const CallArgs& args) {
  const Span span = args.span;
  const Value a = without_quotient(expr(args.positional[0]));
  const Value b = without_quotient(expr(args.positional[1]));
  if (a.is_error() || b.is_error()) return error(span);
  Value result = floor_div_of(a, b, args.name, span);
  const bool is_made = result.is_typed() && !result.is_exact && is_int(result.type.dtype);
  if (!is_made || !stays_adaptable(ScalarOp::div, std::vector{a, b})) return result;
  Remake made{{}, false, true, true};
  made.in_type = [this, a, b, name = args.name, result, span](DType to) {
    if (!is_int(to)) return convert(result, to, span);
    const DType type = arithmetic_type(to);
    return convert(floor_div_of(coerce(a, type), coerce(b, type), name, span), to, span);
  };
  result.remake = std::make_shared<const Remake>(std::move(made));
  return result;
}

Value Elaborator::floor_div_of(Value a, Value b, const std::string& name, Span span) {
  if (a.is_error() || b.is_error()) return error(span);
  const auto apply = [&](ScalarOp op, std::vector<Value> operands) {
    return scalar_op(op, std::move(operands), span, name);
  };
  if (a.is_typed()) a = shared(a, "dividend");
  if (b.is_typed()) b = shared(b, "divisor");
  Value down = without_quotient(apply(ScalarOp::div, {a, b}));
  const Value rest = apply(ScalarOp::mod, {a, b});
  if (down.is_error() || rest.is_error()) return error(span);
  if (is_real(down)) return cannot_combine(name, a, b, span);
  const auto is_natural = [&](const Value& v) {
    if (v.is_typed()) return is_unsigned_int(v.type.dtype);
    return v.is_host() && !v.declared && sizes_.proves_nonnegative(v.host);
  };
  if (is_natural(a) && is_natural(b)) return down;
  const Value zero = host(pool().const_int(0), span), one = host(pool().const_int(1), span);
  const Value is_rest = apply(ScalarOp::ne, {rest, zero});
  const Value is_positive = apply(ScalarOp::gt, {rest, zero});
  const Value differs = apply(ScalarOp::ne, {is_positive, apply(ScalarOp::gt, {b, zero})});
  const Value below = apply(ScalarOp::sub, {down, one});
  Value result =
      apply(ScalarOp::select, {apply(ScalarOp::bit_and, {is_rest, differs}), below, down});
  result.quotient.reset();
  return result;
}

// Is it a size that may be negative?
bool Elaborator::may_be_negative(const Value& value) {
  const bool is_size = value.is_host() && !value.declared && value.remake == nullptr &&
                       !pool().is_const(value.host) && pool().type(value.host) == HostType::Int;
  return is_size && !sizes_.proves_nonnegative(value.host);
}

Value Elaborator::as_low_bits(const Value& value, DType type) {
  if (!is_unsigned_int(type) || !may_be_negative(value)) return value;
  const bool is_wide = type.bits == 64;
  Expr size{ExprKind::HostSize, scalar(is_wide ? kI64 : type), value.span};
  size.size = value.host;
  if (!is_wide) {
    const HostExprId all = pool().const_int(static_cast<std::int64_t>(max_int(type)));
    size.size = pool().make(HostOp::BitAnd, value.host, all);
    return typed(std::move(size));
  }
  Expr bits{ExprKind::Bitcast, scalar(type), value.span};
  bits.args = {typed(std::move(size)).expr};
  return typed(std::move(bits));
}

// A size that is below zero wherever it is not zero is a mistake beside unsigned integers.
bool Elaborator::is_never_positive(HostExprId size) {
  const HostExprId opposite = pool().sub(pool().const_int(0), size);
  return !sizes_.proves_nonnegative(size) && sizes_.proves_nonnegative(opposite);
}

// A constant of a mask: -1 has all bits of the type set.
Value Elaborator::as_mask(const Value& value, DType type) {
  const bool is_table = value.kind == ValueKind::Table;
  if (!is_unsigned_int(type) || holds_big(value) || (!is_table && !value.is_host())) return value;
  const std::int64_t least = min_int(make_int(type.bits).value_or(kI64));
  // Bits of u64 are held as those of a literal of 2^63 or more.
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

}  // namespace cinch::sema
