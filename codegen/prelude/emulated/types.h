// types.h: the first part of the prelude for CUDA text on the emulated GPU: CUDA's keywords and
// built-in types, for Clang's CUDA mode without any header. The text behind the prelude is exactly
// the text for NVRTC.
#define __CUDACC__ 1
// Inline PTX has a second body.
#define CINCH_LANG_PORTABLE_ONLY 1

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define CINCH_EMULATED_FN static __device__ __forceinline__

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
};

#define CINCH_EMULATED_VECTORS(Name, Element, Align2, Align4)                            \
  struct __align__(Align2) Name##2 {                                                     \
    Element x, y;                                                                        \
  };                                                                                     \
  struct __align__(Align4) Name##4 {                                                     \
    Element x, y, z, w;                                                                  \
  };                                                                                     \
  CINCH_EMULATED_FN Name##2 make_##Name##2(Element x, Element y) {                       \
    return {x, y};                                                                       \
  }                                                                                      \
  CINCH_EMULATED_FN Name##4 make_##Name##4(Element x, Element y, Element z, Element w) { \
    return {x, y, z, w};                                                                 \
  }
CINCH_EMULATED_VECTORS(uchar, unsigned char, 2, 4)
CINCH_EMULATED_VECTORS(ushort, unsigned short, 4, 8)
CINCH_EMULATED_VECTORS(int, int, 8, 16)
CINCH_EMULATED_VECTORS(uint, unsigned, 8, 16)
CINCH_EMULATED_VECTORS(longlong, long long, 16, 16)
CINCH_EMULATED_VECTORS(ulonglong, unsigned long long, 16, 16)
CINCH_EMULATED_VECTORS(float, float, 8, 16)
CINCH_EMULATED_VECTORS(double, double, 16, 16)
#undef CINCH_EMULATED_VECTORS
