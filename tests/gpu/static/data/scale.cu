struct __align__(16) F4 {
  float v[4];
};
typedef unsigned u32;
// Warps take tiles of 1024 elements; a tile not at 16 bytes goes by a function that loads element
// by element.
static __device__ __noinline__ F4 load_part(const float* p) {
  F4 x;
  for (int c = 0; c < 4; ++c) x.v[c] = p[c];
  return x;
}
extern "C" __global__ void __launch_bounds__(256)
    scale(const float* __restrict__ g, float* __restrict__ out, float by, u32 tiles) {
  const u32 lane = threadIdx.x & 31;
  for (u32 t = blockIdx.x * 8 + (threadIdx.x >> 5); t < tiles; t += gridDim.x * 8) {
    const float* p = g + t * 1024 + 4 * lane;
    F4* q = (F4*)(out + t * 1024) + lane;
    const bool whole = ((unsigned long long)p & 15) == 0;
#pragma unroll 1
    for (int r = 0; r < 8; r += 2) {
      F4 x[2];
      for (int k = 0; k < 2; ++k)
        x[k] = whole ? *(const F4*)(p + (r + k) * 128) : load_part(p + (r + k) * 128);
      for (int k = 0; k < 2; ++k) {
        for (int c = 0; c < 4; ++c) x[k].v[c] *= by;
        q[(r + k) * 32] = x[k];
      }
    }
  }
}
