// Dispatch from operation and type to the language's own functions; and the ranges of results.

#include <bit>
#include <limits>

#include "runtime/core/numbers/number_range.h"
#include "runtime/core/numbers/scalar_functions.h"

namespace cinch {
namespace {

using Operands = std::span<const std::uint64_t>;

// A number of type T and its element; T is float, double, or the container of an integer type.
template <typename T>
T load(std::uint64_t element) {
  if constexpr (std::is_same_v<T, float>) {
    return f32_of(element);
  } else if constexpr (std::is_same_v<T, double>) {
    return f64_of(element);
  } else {
    return static_cast<T>(element);
  }
}
template <typename T>
std::uint64_t store(DType dtype, T value) {
  if constexpr (std::is_same_v<T, float>) {
    return element_of_f32(lang::canonical(value));
  } else if constexpr (std::is_same_v<T, double>) {
    return element_of_f64(lang::canonical(value));
  } else {
    return static_cast<std::uint64_t>(lang::wrap_int(value, dtype.bits));
  }
}

template <typename T>
std::uint64_t evaluate_as(ScalarOp op, DType dtype, Operands operands) {
  const auto at = [&](std::size_t i) { return i < operands.size() ? load<T>(operands[i]) : T{}; };
  if (scalar_op_info(op).result == ScalarResult::Bool) return compare_scalars<T>(op, at(0), at(1));
  if constexpr (!std::is_floating_point_v<T>) {
    if (op == ScalarOp::popcount) return lang::popcount(at(0), dtype.bits);
    if (op == ScalarOp::clz) return lang::clz(at(0), dtype.bits);
  }
  return store<T>(dtype, evaluate_number<T>(op, at(0), at(1), at(2), dtype.bits));
}

std::uint64_t evaluate_bool(ScalarOp op, Operands operands) {
  const bool a = operands[0] != 0;
  const bool b = operands.size() > 1 && operands[1] != 0;
  switch (op) {
    case ScalarOp::bit_not:
      return !a;
    case ScalarOp::bit_and:
    case ScalarOp::min:
      return a && b;
    case ScalarOp::bit_or:
    case ScalarOp::max:
      return a || b;
    case ScalarOp::bit_xor:
      return a != b;
    default:
      return compare_scalars<int>(op, a, b);
  }
}

// A narrow float as the f32 of the same value.
float widen(DType from, std::uint64_t element) {
  switch (from.kind) {
    case DTypeKind::F16:
      return lang::from_f16(static_cast<lang::u16>(element));
    case DTypeKind::BF16:
      return lang::from_bf16(static_cast<lang::u16>(element));
    case DTypeKind::F8E4M3:
      return lang::from_f8e4m3(static_cast<lang::u8>(element));
    default:
      return lang::from_f8e5m2(static_cast<lang::u8>(element));
  }
}

template <typename T>
std::uint64_t to_float(DType to, T value) {
  switch (to.kind) {
    case DTypeKind::F32:
      return store<float>(to, lang::to_f32(value));
    case DTypeKind::F64:
      return store<double>(to, lang::to_f64(value));
    case DTypeKind::F16:
      return lang::to_f16(value);
    case DTypeKind::BF16:
      return lang::to_bf16(value);
    case DTypeKind::F8E4M3:
      return lang::to_f8e4m3(value);
    default:
      return lang::to_f8e5m2(value);
  }
}

template <typename T>
std::uint64_t to_int(DType to, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return is_signed_int(to)
               ? static_cast<std::uint64_t>(lang::float_to_int<lang::i64>(value, to.bits))
               : lang::float_to_int<lang::u64>(value, to.bits);
  } else {
    return is_signed_int(to)
               ? static_cast<std::uint64_t>(lang::int_to_int<lang::i64>(value, to.bits))
               : lang::int_to_int<lang::u64>(value, to.bits);
  }
}

template <typename T>
std::uint64_t convert_from(DType to, T value) {
  if (is_bool(to)) return value != T{};
  return is_float(to) ? to_float(to, value) : to_int(to, value);
}

// Ranges. Every operation that rounds is monotone in each operand. So the ends of a result are
// among the results of the operands' ends, rounded in the same way.

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

float f32_of(std::uint64_t element) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(element));
}
double f64_of(std::uint64_t element) {
  return std::bit_cast<double>(element);
}
std::uint64_t element_of_f32(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
std::uint64_t element_of_f64(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

std::uint64_t encode_bits(DType dtype, std::uint64_t raw) {
  const int unused = 64 - dtype.bits;
  if (is_signed_int(dtype)) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(raw << unused) >> unused);
  }
  return (raw << unused) >> unused;
}

std::uint64_t canonical_element(DType dtype, std::uint64_t element) {
  if (dtype == kF32) return element_of_f32(lang::canonical(f32_of(element)));
  if (dtype == kF64) return element_of_f64(lang::canonical(f64_of(element)));
  if (!is_narrow_float(dtype)) return element;
  const float value = widen(dtype, element);
  return value == value ? element : to_float(dtype, value);
}

std::uint64_t evaluate_scalar(ScalarOp op, DType dtype, Operands operands) {
  if (op == ScalarOp::select) return operands[0] != 0 ? operands[1] : operands[2];
  if (is_bool(dtype)) return evaluate_bool(op, operands);
  if (dtype == kF32) return evaluate_as<float>(op, dtype, operands);
  if (dtype == kF64) return evaluate_as<double>(op, dtype, operands);
  CINCH_CHECK(is_int(dtype), "arithmetic is not done in " + dtype_name(dtype));
  const bool is_wide = dtype.bits > 32;
  if (is_signed_int(dtype)) {
    return is_wide ? evaluate_as<lang::i64>(op, dtype, operands)
                   : evaluate_as<lang::i32>(op, dtype, operands);
  }
  return is_wide ? evaluate_as<lang::u64>(op, dtype, operands)
                 : evaluate_as<lang::u32>(op, dtype, operands);
}

std::uint64_t convert_element(DType from, DType to, std::uint64_t element) {
  if (from == to) return element;
  if (from == kF64) return convert_from<double>(to, f64_of(element));
  if (from == kF32) return convert_from<float>(to, f32_of(element));
  if (is_float(from)) return convert_from<float>(to, widen(from, element));
  if (is_signed_int(from)) return convert_from<lang::i64>(to, static_cast<lang::i64>(element));
  return convert_from<lang::u64>(to, element);
}

std::uint64_t bitcast_element(DType from, DType to, std::uint64_t element) {
  return canonical_element(to, encode_bits(to, canonical_element(from, element)));
}

std::uint64_t element_of_constant(DType dtype, std::uint64_t bits) {
  if (is_float(dtype)) return convert_element(kF64, dtype, canonical_element(kF64, bits));
  return encode_bits(dtype, bits);
}

std::uint64_t constant_of_element(DType dtype, std::uint64_t element) {
  return is_float(dtype) ? convert_element(dtype, kF64, element) : element;
}

std::uint64_t identity_constant(ScalarOp op, DType dtype) {
  const auto number = [&](std::int64_t value) {
    return is_float(dtype) ? std::bit_cast<std::uint64_t>(static_cast<double>(value))
                           : static_cast<std::uint64_t>(value);
  };
  switch (op) {
    case ScalarOp::mul:
      return number(1);
    case ScalarOp::bit_and:
      return is_bool(dtype) ? 1 : is_unsigned_int(dtype) ? max_int(dtype) : number(-1);
    case ScalarOp::min:
      return is_float(dtype) ? std::bit_cast<std::uint64_t>(kInf) : max_int(dtype);
    case ScalarOp::max:
      return is_float(dtype) ? std::bit_cast<std::uint64_t>(-kInf) : number(min_int(dtype));
    default:
      return number(0);  // add, bit_or, bit_xor
  }
}

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
