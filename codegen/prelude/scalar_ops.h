// scalar_ops.h: functions that print the instructions scalar, convert and bitcast, beside the
// language's own. Scalars and, under Clang, lanes have one spelling. Truth values are bool, or
// lanes of i32 that hold 0 and -1. Needs the parts of runtime/core/lang up to convert.h.

namespace cinch {

using lang::i16;
using lang::i32;
using lang::i64;
using lang::i8;
using lang::u16;
using lang::u32;
using lang::u64;
using lang::u8;
using f32 = float;
using f64 = double;

CINCH_LANG_FN f32 f32_bits(u32 bits) {
  return lang::f32_of_bits(bits);
}
CINCH_LANG_FN f64 f64_bits(u64 bits) {
  return lang::f64_of_bits(bits);
}

// The result of a comparison as a truth value.
template <class M>
CINCH_LANG_FN auto truth(M mask) {
  if constexpr (lang::kSame<M, bool>) {
    return mask;
  } else {
    return lang::convert<i32>(mask);
  }
}

template <class V>
CINCH_LANG_FN auto op_eq(V a, V b) {
  return truth(a == b);
}
template <class V>
CINCH_LANG_FN auto op_ne(V a, V b) {
  return truth(a != b);
}
template <class V>
CINCH_LANG_FN auto op_lt(V a, V b) {
  return truth(a < b);
}
template <class V>
CINCH_LANG_FN auto op_le(V a, V b) {
  return truth(a <= b);
}
template <class V>
CINCH_LANG_FN auto op_gt(V a, V b) {
  return truth(a > b);
}
template <class V>
CINCH_LANG_FN auto op_ge(V a, V b) {
  return truth(a >= b);
}
template <class V>
CINCH_LANG_FN auto is_nonzero(V x) {
  return truth(x != lang::splat<V>(0));
}
template <class V>
CINCH_LANG_FN auto op_isnan(V x) {
  return truth(lang::isnan(x));
}
template <class V>
CINCH_LANG_FN auto op_isfinite(V x) {
  return truth(lang::isfinite(x));
}

template <class T>
CINCH_LANG_FN T op_not(T x) {
  if constexpr (lang::kSame<T, bool>) {
    return !x;
  } else {
    return ~x;
  }
}

// c ? a : b of any type, truth values included.
template <class T, class V>
CINCH_LANG_FN V op_select(T c, V a, V b) {
  return lang::select(lang::mask_like<V>(c), a, b);
}

// Integers of a width that is not their container's: the low bits, sign- or zero-extended.
template <int Bits, class V>
CINCH_LANG_FN V wrap_signed(V x) {
  return lang::wrap_int(x, Bits);
}
template <int Bits, class V>
CINCH_LANG_FN V wrap_unsigned(V x) {
  return lang::from_unsigned<V>(lang::wrap_int(lang::bits_of(x), Bits));
}

// 0 or 1 in the element type E.
template <class E, class T>
CINCH_LANG_FN auto truth_to(T x) {
  if constexpr (lang::kSame<T, bool>) {
    return E(x);
  } else {
    return lang::convert<E>(T(x & 1));
  }
}

// Conversions to integers of `Bits` bits. They are computed in the container C, which has the
// target's sign, and held in E, the compute type.
template <class E, class C, int Bits, class V>
CINCH_LANG_FN auto to_int(V x) {
  if constexpr (lang::kIsFloat<V>) {
    return lang::convert<E>(lang::float_to_int<C>(x, Bits));
  } else {
    return lang::convert<E>(lang::int_to_int<C>(x, Bits));
  }
}

// f16 to f32. If the lanes fill a register, names the instruction. Otherwise the optimizer turns
// some comparisons of f32 into comparisons of f16, which are done lane by lane.
template <class H>
CINCH_LANG_FN auto widen_f16(H bits) {
#if defined(CINCH_LANES) && defined(__F16C__)
  constexpr bool kFillsRegister =
      lang::kLanes<H> == CINCH_LANES && (CINCH_LANES == 8 || CINCH_LANES == 16);
  if constexpr (kFillsRegister) {
    lang::Like<H, float> x;
#if CINCH_LANES == 16
    __asm__("vcvtph2ps %1, %0" : "=v"(x) : "v"(bits));
#else
    __asm__("vcvtph2ps %1, %0" : "=x"(x) : "x"(bits));
#endif
    return lang::canonical(x);
  } else {
    return lang::from_f16(bits);
  }
#else
  return lang::from_f16(bits);
#endif
}
// f8e5m2 is the high byte of f16.
template <class B>
CINCH_LANG_FN auto widen_f8e5m2(B bits) {
  using U = lang::Like<B, u32>;
  return widen_f16(lang::convert<u16>(U(lang::convert<u32>(bits) << lang::splat<U>(8))));
}
template <class H>
CINCH_LANG_FN auto widen_bf16(H bits) {
  return lang::from_bf16(bits);
}
template <class B>
CINCH_LANG_FN auto widen_f8e4m3(B bits) {
  return lang::from_f8e4m3(bits);
}

// The nearest value of a narrow float, in f32.
template <class V>
CINCH_LANG_FN auto round_to_f16(V x) {
  return widen_f16(lang::to_f16(x));
}
template <class V>
CINCH_LANG_FN auto round_to_bf16(V x) {
  return widen_bf16(lang::to_bf16(x));
}
template <class V>
CINCH_LANG_FN auto round_to_f8e4m3(V x) {
  return widen_f8e4m3(lang::to_f8e4m3(x));
}
template <class V>
CINCH_LANG_FN auto round_to_f8e5m2(V x) {
  return widen_f8e5m2(lang::to_f8e5m2(x));
}

// Bits of a value as stored, zero-extended to u32 or u64 (canonical NaN), and back.
template <class V>
CINCH_LANG_FN auto bits_from_float(V x) {
  return lang::bits_of(lang::canonical(x));
}
template <int Bits, class V>
CINCH_LANG_FN auto bits_from_int(V x) {
  return lang::wrap_int(lang::bits_of(x), Bits);
}
template <class V>
CINCH_LANG_FN auto bits_from_f16(V x) {
  return lang::convert<u32>(lang::to_f16(x));
}
template <class V>
CINCH_LANG_FN auto bits_from_bf16(V x) {
  return lang::convert<u32>(lang::to_bf16(x));
}
template <class V>
CINCH_LANG_FN auto bits_from_f8e4m3(V x) {
  return lang::convert<u32>(lang::to_f8e4m3(x));
}
template <class V>
CINCH_LANG_FN auto bits_from_f8e5m2(V x) {
  return lang::convert<u32>(lang::to_f8e5m2(x));
}
template <class U>
CINCH_LANG_FN auto bits_to_f32(U bits) {
  return lang::f32_of_bits(bits);
}
template <class U>
CINCH_LANG_FN auto bits_to_f64(U bits) {
  return lang::f64_of_bits(bits);
}
template <class U>
CINCH_LANG_FN auto bits_to_f16(U bits) {
  return widen_f16(lang::convert<u16>(bits));
}
template <class U>
CINCH_LANG_FN auto bits_to_bf16(U bits) {
  return widen_bf16(lang::convert<u16>(bits));
}
template <class U>
CINCH_LANG_FN auto bits_to_f8e4m3(U bits) {
  return widen_f8e4m3(lang::convert<u8>(bits));
}
template <class U>
CINCH_LANG_FN auto bits_to_f8e5m2(U bits) {
  return widen_f8e5m2(lang::convert<u8>(bits));
}
template <int Bits, class U>
CINCH_LANG_FN auto bits_to_signed(U bits) {
  return lang::wrap_int(lang::as_signed(bits), Bits);
}

}  // namespace cinch
