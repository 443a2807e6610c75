// Dispatch from operation and type to the language's own functions.

#include <bit>
#include <limits>

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
  constexpr double kInf = std::numeric_limits<double>::infinity();
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

}  // namespace cinch
