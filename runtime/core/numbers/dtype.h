// Scalar types of the language: bool, u1..u64, i2..i64 of any width, and six float formats.
// Gives names, parsing, widths, storage rules, and the two rules that sema and the interpreter
// share: which conversions are silent, and in which type arithmetic is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cinch {

enum class DTypeKind : std::uint8_t {
#define CINCH_DTYPE(Kind, spelling, bits, digits, max_exponent, min_exponent) Kind,
#include "runtime/core/numbers/dtype.def"
};

/// A scalar type: kind and width in bits. Make one with the functions below: they keep the width
/// within what the kind allows (bool 1, u 1..64, i 2..64, floats their own).
struct DType {
  DTypeKind kind = DTypeKind::F32;
  std::uint8_t bits = 32;

  friend constexpr bool operator==(const DType&, const DType&) = default;
};

inline constexpr DType kBool{DTypeKind::Bool, 1};
inline constexpr DType kU8{DTypeKind::UInt, 8};
inline constexpr DType kU16{DTypeKind::UInt, 16};
inline constexpr DType kU32{DTypeKind::UInt, 32};
inline constexpr DType kU64{DTypeKind::UInt, 64};
inline constexpr DType kI8{DTypeKind::Int, 8};
inline constexpr DType kI16{DTypeKind::Int, 16};
inline constexpr DType kI32{DTypeKind::Int, 32};
inline constexpr DType kI64{DTypeKind::Int, 64};
inline constexpr DType kF16{DTypeKind::F16, 16};
inline constexpr DType kBF16{DTypeKind::BF16, 16};
inline constexpr DType kF32{DTypeKind::F32, 32};
inline constexpr DType kF64{DTypeKind::F64, 64};
inline constexpr DType kF8E4M3{DTypeKind::F8E4M3, 8};
inline constexpr DType kF8E5M2{DTypeKind::F8E5M2, 8};

/// u<bits>, i<bits>; nothing if the width is outside 1..64 (2..64 for signed).
std::optional<DType> make_uint(std::int64_t bits);
std::optional<DType> make_int(std::int64_t bits);

/// The name in programs: "u7", "f8e4m3". parse_dtype is its inverse and takes no other names.
std::string dtype_name(DType type);
std::optional<DType> parse_dtype(std::string_view name);

constexpr bool is_bool(DType t) {
  return t.kind == DTypeKind::Bool;
}
constexpr bool is_signed_int(DType t) {
  return t.kind == DTypeKind::Int;
}
constexpr bool is_unsigned_int(DType t) {
  return t.kind == DTypeKind::UInt;
}
constexpr bool is_int(DType t) {
  return is_signed_int(t) || is_unsigned_int(t);
}
constexpr bool is_float(DType t) {
  return !is_int(t) && !is_bool(t);
}
/// f16, bf16, f8e4m3, f8e5m2: stored as bits, computed as f32.
constexpr bool is_narrow_float(DType t) {
  return is_float(t) && t.bits < 32;
}

/// Significand digits of a float, including the hidden bit (24 for f32); 0 for all other types.
int significand_digits(DType type);

/// True if an array in a wire or a state is a run of bits (least significant first, no padding
/// between elements): every width except 8, 16, 32 and 64. Other arrays hold whole elements.
constexpr bool is_bit_packed(DType t) {
  return t.bits != 8 && t.bits != 16 && t.bits != 32 && t.bits != 64;
}
/// Bytes of `num_elems` elements in a wire or a state. num_elems >= 0; the product must fit 64 bits
/// (checked): callers bound sizes before.
std::int64_t packed_bytes(DType type, std::int64_t num_elems);
/// Bytes of one element in a working buffer, which packs nothing: 1, 2, 4 or 8.
constexpr int element_bytes(DType t) {
  return t.bits <= 8 ? 1 : t.bits <= 16 ? 2 : t.bits <= 32 ? 4 : 8;
}

/// Smallest and largest value of an integer type or bool. min_int of u<b> is 0; max_int of u64
/// needs the unsigned form.
std::int64_t min_int(DType type);
std::uint64_t max_int(DType type);

/// True if every value of `from` is a value of `to`; such a conversion is silent (language.md,
/// "Types"). Reflexive. bool widens like u1; only bool widens to bool.
bool widens_losslessly(DType from, DType to);

/// The type with which an operand enters arithmetic: i32 for bool and integers under 32 bits, f32
/// for narrow floats, otherwise its own type.
DType arithmetic_type(DType type);

/// The type in which `a op b` is computed, or nothing if one of them needs an `as`: one operand
/// must widen losslessly to the arithmetic type of the other.
std::optional<DType> common_arithmetic_type(DType a, DType b);

}  // namespace cinch

template <>
struct std::hash<cinch::DType> {
  std::size_t operator()(cinch::DType t) const noexcept {
    return (static_cast<std::size_t>(t.kind) << 8) | t.bits;
  }
};
