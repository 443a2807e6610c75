// base.h: first part of the language's own functions. See runtime/core/lang.h for how the parts are
// used and joined. Includes nothing, calls no library; gives the types, lanes, selection and bits
// that all other parts stand on.

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define CINCH_LANG_CUDA 1
#define CINCH_LANG_FN static __device__ __forceinline__
#define CINCH_LANG_SLOW_FN static __device__ __noinline__
#define CINCH_LANG_TABLE static __device__ const
#else
#define CINCH_LANG_CUDA 0
#define CINCH_LANG_FN static inline __attribute__((always_inline, unused))
#define CINCH_LANG_SLOW_FN static __attribute__((noinline, unused))
#define CINCH_LANG_TABLE static constexpr
#endif
#if defined(__clang__) && !CINCH_LANG_CUDA
#define CINCH_LANG_VECTORS 1
// Every function here is inlined: how wide vectors would be passed does not matter.
#pragma clang diagnostic ignored "-Wpsabi"
#else
#define CINCH_LANG_VECTORS 0
#endif

namespace cinch {
namespace lang {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

// A value of W lanes: a scalar (W = 1) or, under Clang, an ext_vector_type(W) of one element type.
template <class V>
struct LaneTraits {
  using Element = V;
  static constexpr int kLanes = 1;
  template <class E>
  using With = E;
};
#if CINCH_LANG_VECTORS
template <class E, int W>
using Vec = E __attribute__((ext_vector_type(W)));
template <class T, int W>
struct LaneTraits<T __attribute__((ext_vector_type(W)))> {
  using Element = T;
  static constexpr int kLanes = W;
  template <class E>
  using With = E __attribute__((ext_vector_type(W)));
};
#endif

template <class V>
using Element = typename LaneTraits<V>::Element;
template <class V>
inline constexpr int kLanes = LaneTraits<V>::kLanes;
template <class V>
inline constexpr bool kIsScalar = kLanes<V> == 1;
// The value of as many lanes as V with elements E.
template <class V, class E>
using Like = typename LaneTraits<V>::template With<E>;

template <class V>
inline constexpr bool kIsF32 = kSame<Element<V>, float>;
template <class V>
inline constexpr bool kIsF64 = kSame<Element<V>, double>;
template <class V>
inline constexpr bool kIsFloat = kIsF32<V> || kIsF64<V>;
template <class V>
inline constexpr bool kIsSigned = Element<V>(-1) < Element<V>(0);
template <class V>
inline constexpr int kBits = 8 * int(sizeof(Element<V>));

template <int Bytes>
struct IntOfSize;
template <>
struct IntOfSize<1> {
  using Signed = i8;
  using Unsigned = u8;
};
template <>
struct IntOfSize<2> {
  using Signed = i16;
  using Unsigned = u16;
};
template <>
struct IntOfSize<4> {
  using Signed = i32;
  using Unsigned = u32;
};
template <>
struct IntOfSize<8> {
  using Signed = i64;
  using Unsigned = u64;
};
template <class V>
using UnsignedLike = Like<V, typename IntOfSize<sizeof(Element<V>)>::Unsigned>;
template <class V>
using SignedLike = Like<V, typename IntOfSize<sizeof(Element<V>)>::Signed>;

// What a comparison gives: bool, or lanes of 0 and -1 as wide as the compared elements.
template <class V>
using Mask = decltype(V() == V());

// All lanes hold x.
template <class V>
CINCH_LANG_FN V splat(Element<V> x) {
  return (V)x;
}

// c ? a : b in each lane. Masks are as wide as the elements of V (see mask_like).
template <class V>
CINCH_LANG_FN V select(Mask<V> c, V a, V b) {
  return c ? a : b;
}

// C++ conversion of each lane. Floats to integers only where the value is known to fit.
template <class E, class V>
CINCH_LANG_FN Like<V, E> convert(V x) {
  if constexpr (kSame<Element<V>, E>) {
    return x;
  } else if constexpr (kIsScalar<V>) {
    return static_cast<E>(x);
  } else {
#if CINCH_LANG_VECTORS
    return __builtin_convertvector(x, Like<V, E>);
#endif
  }
}

// The mask that goes with V from the mask of a value with other elements.
template <class V, class M>
CINCH_LANG_FN Mask<V> mask_like(M mask) {
  if constexpr (kIsScalar<V>) {
    return mask;
  } else {
    return convert<Element<Mask<V>>>(mask);
  }
}

// Is the mask set in some lane?
template <class M>
CINCH_LANG_FN bool any(M mask) {
  if constexpr (kIsScalar<M>) {
    return mask;
  } else {
#if CINCH_LANG_VECTORS
    return __builtin_reduce_or(mask) != 0;
#endif
  }
}

// Lane i of a value (i is 0 for scalars).
template <class V>
CINCH_LANG_FN Element<V> lane(V x, int i) {
  if constexpr (kIsScalar<V>) {
    return x;
  } else {
    return x[i];
  }
}
template <class V>
CINCH_LANG_FN void set_lane(V& x, int i, Element<V> value) {
  if constexpr (kIsScalar<V>) {
    x = value;
  } else {
    x[i] = value;
  }
}

// The bits of floats as unsigned integers, and back. Integers pass through as their unsigned form.
template <class V>
CINCH_LANG_FN UnsignedLike<V> bits_of(V x) {
#if CINCH_LANG_CUDA
  if constexpr (kIsF32<V>) {
    return __float_as_uint(x);
  } else if constexpr (kIsF64<V>) {
    return (u64)__double_as_longlong(x);
  } else {
    return (UnsignedLike<V>)x;
  }
#else
  return __builtin_bit_cast(UnsignedLike<V>, x);
#endif
}
template <class V>
CINCH_LANG_FN Like<V, float> f32_of_bits(V bits) {
#if CINCH_LANG_CUDA
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(Like<V, float>, bits);
#endif
}
template <class V>
CINCH_LANG_FN Like<V, double> f64_of_bits(V bits) {
#if CINCH_LANG_CUDA
  return __longlong_as_double((i64)bits);
#else
  return __builtin_bit_cast(Like<V, double>, bits);
#endif
}
template <class F, class U>
CINCH_LANG_FN F float_of_bits(U bits) {
  if constexpr (kIsF32<F>) {
    return f32_of_bits(bits);
  } else {
    return f64_of_bits(bits);
  }
}
// An unsigned value as the signed one of the same bits.
template <class U>
CINCH_LANG_FN SignedLike<U> as_signed(U x) {
#if CINCH_LANG_CUDA
  return (SignedLike<U>)x;
#else
  return __builtin_bit_cast(SignedLike<U>, x);
#endif
}

// The sign bit of a float's bits.
template <class F>
CINCH_LANG_FN UnsignedLike<F> sign_bit() {
  using U = UnsignedLike<F>;
  return splat<U>(Element<U>(1) << (kBits<F> - 1));
}

template <class F>
CINCH_LANG_FN F nan_of() {
  if constexpr (kIsF32<F>) {
    return f32_of_bits(splat<UnsignedLike<F>>(0x7fc00000u));
  } else {
    return f64_of_bits(splat<UnsignedLike<F>>(0x7ff8000000000000ull));
  }
}
template <class F>
CINCH_LANG_FN F infinity_of() {
  if constexpr (kIsF32<F>) {
    return f32_of_bits(splat<UnsignedLike<F>>(0x7f800000u));
  } else {
    return f64_of_bits(splat<UnsignedLike<F>>(0x7ff0000000000000ull));
  }
}

// What a float is stored and bitcast as: every NaN is the one canonical NaN.
template <class F>
CINCH_LANG_FN F canonical(F x) {
  return select(x != x, nan_of<F>(), x);
}

}  // namespace lang
}  // namespace cinch
