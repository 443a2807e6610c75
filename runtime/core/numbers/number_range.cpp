// Every operation that rounds is monotone in each operand. So the ends of a result are among the
// results of the operands' ends, rounded in the same way.
#include "runtime/core/numbers/number_range.h"

namespace cinch {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
// Integers below this are exact as doubles, and so are sums of two of them.
constexpr double kExact = 0x1p53;

bool is_finite(const NumberRange& x) {
  return std::isfinite(x.low) && std::isfinite(x.high);
}

// An integer that is not wrapped.
NumberRange held(const NumberRange& range, DType dtype) {
  if (is_float(dtype)) return range;
  const NumberRange all = all_numbers(dtype);
  const bool is_exact = std::max(std::abs(range.low), std::abs(range.high)) < kExact;
  return is_exact && range.low >= all.low && range.high <= all.high ? range : all;
}

// For an operation that rounds each end by itself and leaves integers as they are.
NumberRange rounded_ends(const NumberRange& x, DType dtype, double (*round)(double)) {
  return is_float(dtype) ? NumberRange{round(x.low), round(x.high), x.may_be_nan} : x;
}

NumberRange range_of_arithmetic(ScalarOp op, DType dtype, const NumberRange& a,
                                const NumberRange& b) {
  const NumberRange all = all_numbers(dtype);
  if (is_bool(dtype) || (is_float(dtype) && dtype.bits < 32)) return all;
  const auto apply = [op, dtype](double x, double y) -> double {
    const auto by = [op](auto v, auto w) {
      return op == ScalarOp::add ? v + w : op == ScalarOp::sub ? v - w : v * w;
    };
    return dtype == kF32 ? by(static_cast<float>(x), static_cast<float>(y)) : by(x, y);
  };
  const bool may_be_nan = a.may_be_nan || b.may_be_nan;
  if (!is_finite(a) || !is_finite(b)) {
    // Infinities make NaN of a difference, and of a product with 0. Sums and products of numbers
    // that are not negative are not negative either.
    const bool is_known = op != ScalarOp::sub && a.low >= 0 && b.low >= 0 && !std::isinf(a.low) &&
                          !std::isinf(b.low) && is_float(dtype);
    if (!is_known) return all;
    return {apply(a.low, b.low), kInf, may_be_nan || op == ScalarOp::mul};
  }
  NumberRange range = {kInf, -kInf, may_be_nan};
  for (const double first : {a.low, a.high}) {
    for (const double second : {b.low, b.high}) {
      const double result = apply(first, second);
      range = joined(range, {result, result});
    }
  }
  return held(range, dtype);
}

}  // namespace

NumberRange range_of_scalar(ScalarOp op, DType dtype, std::span<const NumberRange> operands) {
  const NumberRange all = all_numbers(dtype);
  if (scalar_op_info(op).result != ScalarResult::Same) return all;
  const NumberRange& x = operands[0];
  switch (op) {
    case ScalarOp::neg:
      return held(negated(x), dtype);
    case ScalarOp::abs: {
      const double low = std::abs(x.low), high = std::abs(x.high);
      const bool has_zero = x.low <= 0 && x.high >= 0;
      return held({has_zero ? 0 : std::min(low, high), std::max(low, high), x.may_be_nan}, dtype);
    }
    case ScalarOp::sign:
      return held({-1, 1, x.may_be_nan}, dtype);
    case ScalarOp::floor:
      return rounded_ends(x, dtype, std::floor);
    case ScalarOp::ceil:
      return rounded_ends(x, dtype, std::ceil);
    case ScalarOp::round:
      return rounded_ends(x, dtype, std::nearbyint);
    case ScalarOp::trunc:
      return rounded_ends(x, dtype, std::trunc);
    case ScalarOp::min:
      return smaller(x, operands[1]);
    case ScalarOp::max:
      return larger(x, operands[1]);
    case ScalarOp::clamp:
      return smaller(larger(x, operands[1]), operands[2]);
    case ScalarOp::select:
      return joined(operands[1], operands[2]);
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
      return range_of_arithmetic(op, dtype, x, operands[1]);
    case ScalarOp::bit_and: {
      // Bits of numbers that are not negative are their value.
      const NumberRange& y = operands[1];
      const double most = std::min(x.low >= 0 ? x.high : kInf, y.low >= 0 ? y.high : kInf);
      return is_int(dtype) && most <= all.high ? NumberRange{0, most} : all;
    }
    case ScalarOp::shr: {
      const double by = operands[1].low;
      const bool is_known = x.low >= 0 && by == operands[1].high && by >= 0 && by < dtype.bits;
      return is_known ? NumberRange{0, std::floor(std::ldexp(x.high, -static_cast<int>(by)))} : all;
    }
    default:
      return all;
  }
}

NumberRange range_of_convert(const NumberRange& x, DType to) {
  const NumberRange all = all_numbers(to);
  if (is_bool(to) || (is_float(to) && to.bits < 32)) return all;
  if (to == kF64) return x;
  if (to == kF32) return {static_cast<float>(x.low), static_cast<float>(x.high), x.may_be_nan};
  const auto whole = [&](double end) { return std::clamp(std::trunc(end), all.low, all.high); };
  const NumberRange range = {whole(x.low), whole(x.high)};
  return x.may_be_nan ? joined(range, {0, 0}) : range;
}

}  // namespace cinch
