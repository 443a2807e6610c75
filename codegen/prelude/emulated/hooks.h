// hooks.h: the emulator's functions, as the text's built-ins call them. The compiler turns a call
// of cinch_emulated_… into a call through the table of codegen/emulator/hooks.def. It sets the last
// argument to the place of the call in the text. Needs types.h.

// The running thread's coordinates: the beginning of struct Hooks in codegen/emulator/module.h.
struct CinchEmulatedState {
  uint3 thread, block;
  dim3 block_dim, grid_dim;
};

extern "C" {
__device__ const CinchEmulatedState* cinch_emulated_state();
__device__ unsigned cinch_emulated_sync_block(unsigned op, unsigned value, unsigned site);
__device__ void cinch_emulated_sync_warp(unsigned mask, unsigned site);
__device__ unsigned long long cinch_emulated_shuffle(unsigned mask, unsigned long long value,
                                                     unsigned source, unsigned site);
__device__ unsigned cinch_emulated_vote(unsigned op, unsigned mask, unsigned value, unsigned site);
__device__ unsigned cinch_emulated_match(unsigned op, unsigned mask, unsigned long long value,
                                         unsigned site);
__device__ unsigned cinch_emulated_active_mask(unsigned site);
__device__ unsigned long long cinch_emulated_atomic(unsigned op, void* at, unsigned size,
                                                    unsigned long long value,
                                                    unsigned long long compare, unsigned site);
__device__ void cinch_emulated_fence(unsigned site);
__device__ void cinch_emulated_trap(unsigned site);
__device__ double cinch_emulated_round(unsigned mode, double x);
__device__ float cinch_emulated_fma32(float a, float b, float c);
__device__ double cinch_emulated_fma64(double a, double b, double c);
}

#define threadIdx (cinch_emulated_state()->thread)
#define blockIdx (cinch_emulated_state()->block)
#define blockDim (cinch_emulated_state()->block_dim)
#define gridDim (cinch_emulated_state()->grid_dim)
#define warpSize 32

// Values of up to eight bytes are passed as words.
template <class T>
CINCH_EMULATED_FN unsigned long long cinch_emulated_word(T x) {
  static_assert(sizeof(T) <= 8, "shuffles and atomics take up to eight bytes");
  unsigned long long word = 0;
  __builtin_memcpy(&word, &x, sizeof(T));
  return word;
}
template <class T>
CINCH_EMULATED_FN T cinch_emulated_value(unsigned long long word) {
  T x;
  __builtin_memcpy(&x, &word, sizeof(T));
  return x;
}
