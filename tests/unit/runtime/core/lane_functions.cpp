// One variant of the functions under test: CINCH_VARIANT names it, the compiler's options make it.
// It includes nothing that emits shared inline code, so that variants stay apart.
#include "tests/unit/runtime/core/lane_functions.h"

#include "runtime/core/lang.h"

namespace cinch::lane_tests {
namespace {

using namespace cinch::lang;
using std::size_t;
using std::uint64_t;

// W lanes of E from the low bits of words, and back.
template <class V>
V load(const uint64_t* words) {
  V v = V();
  for (int i = 0; i < kLanes<V>; ++i) {
    const auto bits = static_cast<Element<UnsignedLike<V>>>(words[i]);
    set_lane(v, i, __builtin_bit_cast(Element<V>, bits));
  }
  return v;
}
template <class V>
void store(V v, uint64_t* words) {
  if constexpr (kIsFloat<V>) v = canonical(v);
  for (int i = 0; i < kLanes<V>; ++i) {
    words[i] = __builtin_bit_cast(Element<UnsignedLike<V>>, Element<V>(lane(v, i)));
  }
}
// Masks as 0 and 1.
template <class V>
V from_mask(Mask<V> mask) {
  return select(mask, splat<V>(1), splat<V>(0));
}

template <class E, int W>
struct MakeLanes {
  using Type = Vec<E, W>;
};
template <class E>
struct MakeLanes<E, 1> {
  using Type = E;
};

template <class E, int W, class F>
void run_lanes(const uint64_t* a, const uint64_t* b, const uint64_t* c, uint64_t* out, size_t n) {
  using V = typename MakeLanes<E, W>::Type;
  for (size_t i = 0; i < n; i += W) {
    store(F()(load<V>(a + i), load<V>(b + i), load<V>(c + i)), out + i);
  }
}

constexpr DrawStream kStream = {0x12345678u, 0x9abcdef0u, 7, 3, 0};

#define CINCH_UNARY(name, call)        \
  struct name {                        \
    template <class V>                 \
    auto operator()(V x, V, V) const { \
      return call;                     \
    }                                  \
  };
#define CINCH_BINARY(name, call)         \
  struct name {                          \
    template <class V>                   \
    auto operator()(V x, V y, V) const { \
      return call;                       \
    }                                    \
  };
#define CINCH_TERNARY(name, call)          \
  struct name {                            \
    template <class V>                     \
    auto operator()(V x, V y, V z) const { \
      return call;                         \
    }                                      \
  };

// clang-format off: it never comes to rest on these lists
// The lists: F for floats, I for integers, and functions with signatures of their own.
#define CINCH_FLOAT_UNARY(X)                                                                   \
  X(Exp, lang::exp(x))                                                                         \
  X(Exp2, lang::exp2(x))                                                                       \
  X(Log, lang::log(x))                                                                         \
  X(Log1p, lang::log1p(x)) X(Tanh, lang::tanh(x)) X(Log2, lang::log2(x)) X(Sin, lang::sin(x)) X(Cos, lang::cos(x)) X(Sqrt, lang::sqrt(x))      \
      X(Rsqrt, lang::rsqrt(x)) X(Floor, lang::floor(x)) X(Ceil, lang::ceil(x))                 \
          X(Round, lang::round(x)) X(Trunc, lang::trunc(x)) X(Sign, lang::sign(x))             \
              X(Abs, lang::abs(x)) X(Neg, lang::neg(x)) X(IsNan, from_mask<V>(lang::isnan(x))) \
                  X(IsFinite, from_mask<V>(lang::isfinite(x))) X(ToF16, lang::to_f16(x))       \
                      X(ToBf16, lang::to_bf16(x)) X(ToF8E4M3, lang::to_f8e4m3(x))              \
                          X(ToF8E5M2, lang::to_f8e5m2(x)) X(ToF32, lang::to_f32(x))            \
                              X(ToF64, lang::to_f64(x)) X(ToI32, lang::float_to_int<i32>(x))   \
                                  X(ToU32, lang::float_to_int<u32>(x))                         \
                                      X(ToI64, lang::float_to_int<i64>(x))                     \
                                          X(ToU64, lang::float_to_int<u64>(x))                 \
                                              X(ToI7, lang::float_to_int<i32>(x, 7))           \
                                                  X(ToU40, lang::float_to_int<u64>(x, 40))
#define CINCH_FLOAT_BINARY(X)                                                                 \
  X(Pow, lang::pow(x, y))                                                                     \
  X(Min, lang::min(x, y))                                                                     \
  X(Max, lang::max(x, y))                                                                     \
  X(Div, lang::div(x, y)) X(DivideOrZero, lang::divide_or_zero(x, y)) X(Mod, lang::mod(x, y)) \
      X(Add, lang::add(x, y)) X(Sub, lang::sub(x, y)) X(Mul, lang::mul(x, y))
#define CINCH_FLOAT_TERNARY(X) X(Fma, lang::fma(x, y, z)) X(Clamp, lang::clamp(x, y, z))
#define CINCH_INT_UNARY(X)                                                                        \
  X(IntAbs, lang::abs(x))                                                                         \
  X(IntNeg, lang::neg(x))                                                                         \
  X(IntSign, lang::sign(x))                                                                       \
  X(IntNot, lang::bit_not(x)) X(Popcount, lang::popcount(x)) X(Clz, lang::clz(x))                 \
      X(Popcount5, lang::popcount(x, 5)) X(Clz27, lang::clz(wrap_int(x, 27), 27))                 \
          X(Wrap13, lang::wrap_int(x, 13)) X(IntToF32, lang::to_f32(x))                           \
              X(IntToF64, lang::to_f64(x)) X(IntToF16, lang::to_f16(x))                           \
                  X(IntToBf16, lang::to_bf16(x)) X(IntToF8, lang::to_f8e4m3(x))                   \
                      X(IntToI32, lang::int_to_int<i32>(x)) X(IntToU32, lang::int_to_int<u32>(x)) \
                          X(IntToI64, lang::int_to_int<i64>(x))                                   \
                              X(IntToU64, lang::int_to_int<u64>(x))                               \
                                  X(IntToI5, lang::int_to_int<i32>(x, 5))                         \
                                      X(IntToU1, lang::int_to_int<u32>(x, 1))
#define CINCH_INT_BINARY(X)                                                                 \
  X(IntAdd, lang::add(x, y))                                                                \
  X(IntSub, lang::sub(x, y))                                                                \
  X(IntMul, lang::mul(x, y))                                                                \
  X(IntDiv, lang::div(x, y)) X(IntMod, lang::mod(x, y)) X(IntCeilDiv, lang::ceil_div(x, y)) \
      X(IntMin, lang::min(x, y)) X(IntMax, lang::max(x, y)) X(Shl, lang::shl(x, y))         \
          X(Shr, lang::shr(x, y)) X(Shl29, lang::shl(wrap_int(x, 29), y, 29))               \
              X(Shr29, lang::shr(wrap_int(x, 29), y, 29))
#define CINCH_U32_UNARY(X)                                                         \
  X(Random, lang::random(kStream, x))                                              \
  X(RandomBits, lang::random_bits(kStream, x))                                     \
  X(Normal, lang::normal(kStream, x))                                              \
  X(RandomIndex, lang::random_index(lang::index_permutation(kStream, 1000003), x)) \
  X(RandomHalf, lang::random_half(kStream, kHalfPlane, x))                         \
  X(RoundOfIndex,                                                                  \
    lang::stochastic_round(lang::to_f32(x) * splat<Like<V, float>>(0.001f), kStream, x))
#define CINCH_16_UNARY(X) X(FromF16, lang::from_f16(x)) X(FromBf16, lang::from_bf16(x))
#define CINCH_8_UNARY(X) X(FromF8E4M3, lang::from_f8e4m3(x)) X(FromF8E5M2, lang::from_f8e5m2(x))
// clang-format on

CINCH_FLOAT_UNARY(CINCH_UNARY)
CINCH_FLOAT_BINARY(CINCH_BINARY)
CINCH_FLOAT_TERNARY(CINCH_TERNARY)
CINCH_INT_UNARY(CINCH_UNARY)
CINCH_INT_BINARY(CINCH_BINARY)
CINCH_U32_UNARY(CINCH_UNARY)
CINCH_16_UNARY(CINCH_UNARY)
CINCH_8_UNARY(CINCH_UNARY)

#define CINCH_ROW_F32(name, call) {#name " f32", InputKind::F32, run_lanes<float, W, name>},
#define CINCH_ROW_F64(name, call) {#name " f64", InputKind::F64, run_lanes<double, W, name>},
#define CINCH_ROW_I32(name, call) {#name " i32", InputKind::I32, run_lanes<i32, W, name>},
#define CINCH_ROW_U32(name, call) {#name " u32", InputKind::U32, run_lanes<u32, W, name>},
#define CINCH_ROW_I64(name, call) {#name " i64", InputKind::I64, run_lanes<i64, W, name>},
#define CINCH_ROW_U64(name, call) {#name " u64", InputKind::U64, run_lanes<u64, W, name>},
#define CINCH_ROW_16(name, call) {#name, InputKind::Bits16, run_lanes<u16, W, name>},
#define CINCH_ROW_8(name, call) {#name, InputKind::Bits8, run_lanes<u8, W, name>},

template <int W>
constexpr LaneFunction kFunctions[] = {
    CINCH_FLOAT_UNARY(CINCH_ROW_F32) CINCH_FLOAT_BINARY(CINCH_ROW_F32)
        CINCH_FLOAT_TERNARY(CINCH_ROW_F32) CINCH_FLOAT_UNARY(CINCH_ROW_F64)
            CINCH_FLOAT_BINARY(CINCH_ROW_F64) CINCH_FLOAT_TERNARY(CINCH_ROW_F64)
                CINCH_INT_UNARY(CINCH_ROW_I32) CINCH_INT_BINARY(CINCH_ROW_I32)
                    CINCH_INT_UNARY(CINCH_ROW_U32) CINCH_INT_BINARY(CINCH_ROW_U32)
                        CINCH_INT_UNARY(CINCH_ROW_I64) CINCH_INT_BINARY(CINCH_ROW_I64)
                            CINCH_INT_UNARY(CINCH_ROW_U64) CINCH_INT_BINARY(CINCH_ROW_U64)
                                CINCH_U32_UNARY(CINCH_ROW_U32) CINCH_16_UNARY(CINCH_ROW_16)
                                    CINCH_8_UNARY(CINCH_ROW_8)};

}  // namespace

#define CINCH_JOIN_(a, b) a##b
#define CINCH_JOIN(a, b) CINCH_JOIN_(a, b)

std::span<const LaneFunction> CINCH_JOIN(functions_, CINCH_VARIANT)(int lanes) {
  switch (lanes) {
    case 4:
      return kFunctions<4>;
    case 8:
      return kFunctions<8>;
    case 16:
      return kFunctions<16>;
    default:
      return kFunctions<1>;
  }
}

}  // namespace cinch::lane_tests
