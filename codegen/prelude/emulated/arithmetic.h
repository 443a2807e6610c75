// arithmetic.h: CUDA's functions of integers and floats. Needs hooks.h.

CINCH_EMULATED_FN int __popc(unsigned x) {
  return __builtin_popcount(x);
}
CINCH_EMULATED_FN int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
CINCH_EMULATED_FN int __ffs(int x) {
  return __builtin_ffs(x);
}
CINCH_EMULATED_FN int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
CINCH_EMULATED_FN int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(unsigned(x));
}
CINCH_EMULATED_FN int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
CINCH_EMULATED_FN unsigned __brev(unsigned x) {
  return __builtin_bitreverse32(x);
}
CINCH_EMULATED_FN unsigned long long __brevll(unsigned long long x) {
  return __builtin_bitreverse64(x);
}
CINCH_EMULATED_FN unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned(((unsigned long long)a * b) >> 32);
}
CINCH_EMULATED_FN int __mulhi(int a, int b) {
  return int(((long long)a * b) >> 32);
}
CINCH_EMULATED_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
// Four of the eight bytes of (y, x). A nibble chooses each; its highest bit repeats the byte's
// sign.
CINCH_EMULATED_FN unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = ((unsigned long long)y << 32) | x;
  unsigned out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> (4 * i);
    const unsigned byte = unsigned(bytes >> (8 * (nibble & 7u))) & 0xffu;
    const unsigned sign = (byte & 0x80u) ? 0xffu : 0u;
    out |= ((nibble & 8u) ? sign : byte) << (8 * i);
  }
  return out;
}
CINCH_EMULATED_FN unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = ((unsigned long long)high << 32) | low;
  return unsigned((both << (shift & 31u)) >> 32);
}
CINCH_EMULATED_FN unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = ((unsigned long long)high << 32) | low;
  return unsigned(both >> (shift & 31u));
}

#define CINCH_EMULATED_BITS(name, To, From) \
  CINCH_EMULATED_FN To name(From x) {       \
    return __builtin_bit_cast(To, x);       \
  }
CINCH_EMULATED_BITS(__float_as_uint, unsigned, float)
CINCH_EMULATED_BITS(__float_as_int, int, float)
CINCH_EMULATED_BITS(__uint_as_float, float, unsigned)
CINCH_EMULATED_BITS(__int_as_float, float, int)
CINCH_EMULATED_BITS(__double_as_longlong, long long, double)
CINCH_EMULATED_BITS(__longlong_as_double, double, long long)
#undef CINCH_EMULATED_BITS

CINCH_EMULATED_FN float __fsqrt_rn(float x) {
  return __builtin_sqrtf(x);
}
CINCH_EMULATED_FN double __dsqrt_rn(double x) {
  return __builtin_sqrt(x);
}
CINCH_EMULATED_FN float __fmaf_rn(float a, float b, float c) {
  return cinch_emulated_fma32(a, b, c);
}
CINCH_EMULATED_FN double __fma_rn(double a, double b, double c) {
  return cinch_emulated_fma64(a, b, c);
}
// Rounds to integers. The detour through double loses nothing.
#define CINCH_EMULATED_ROUND(name, mode)         \
  CINCH_EMULATED_FN double name(double x) {      \
    return cinch_emulated_round(mode, x);        \
  }                                              \
  CINCH_EMULATED_FN float name##f(float x) {     \
    return float(cinch_emulated_round(mode, x)); \
  }
CINCH_EMULATED_ROUND(rint, 0)
CINCH_EMULATED_ROUND(floor, 1)
CINCH_EMULATED_ROUND(ceil, 2)
CINCH_EMULATED_ROUND(trunc, 3)
#undef CINCH_EMULATED_ROUND

// Rounds once, like every operation here.
CINCH_EMULATED_FN float __fadd_rn(float a, float b) {
  return a + b;
}
CINCH_EMULATED_FN float __fmul_rn(float a, float b) {
  return a * b;
}
CINCH_EMULATED_FN float __fdiv_rn(float a, float b) {
  return a / b;
}
