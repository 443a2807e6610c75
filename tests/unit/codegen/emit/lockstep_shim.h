// CUDA's words for a host compiler: put in front of emitted CUDA text, so that it runs under
// lockstep.h. Threads are fibers that switch only in collectives, so atomics need nothing. Not a
// model of a GPU's memory: it checks what kernels compute.
#define __global__ __attribute__((visibility("default")))
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __shared__ static
#define __launch_bounds__(n)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

// What the optimiser makes of loops, and no library is linked for.
extern "C" {
__attribute__((visibility("hidden"), weak, no_builtin)) void* memset(void* to, int value,
                                                                     unsigned long size) {
  auto* bytes = static_cast<unsigned char*>(to);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = (unsigned char)value;
  return to;
}
__attribute__((visibility("hidden"), weak, no_builtin)) void* memcpy(void* to, const void* from,
                                                                     unsigned long size) {
  auto* bytes = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = source[i];
  return to;
}
}

struct LockstepIndex {
  unsigned x;
};
struct LockstepHooks {
  LockstepIndex thread, block, block_dim, grid_dim;
  void (*sync_warp)();
  void (*sync_block)();
  unsigned long long (*shuffle)(unsigned long long value, unsigned source);
  unsigned (*ballot)(unsigned predicate);
};
extern "C" __attribute__((visibility("default"))) LockstepHooks* lockstep_hooks = nullptr;
#define threadIdx (lockstep_hooks->thread)
#define blockIdx (lockstep_hooks->block)
#define blockDim (lockstep_hooks->block_dim)
#define gridDim (lockstep_hooks->grid_dim)

static inline void __syncwarp() {
  lockstep_hooks->sync_warp();
}
static inline void __syncthreads() {
  lockstep_hooks->sync_block();
}
static inline void __threadfence() {}
static inline unsigned __ballot_sync(unsigned, bool x) {
  return lockstep_hooks->ballot(x);
}

template <class T>
static inline T lockstep_from(T x, unsigned source) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &x, sizeof(T));
  bits = lockstep_hooks->shuffle(bits, source);
  __builtin_memcpy(&x, &bits, sizeof(T));
  return x;
}
template <class T>
static inline T __shfl_sync(unsigned, T x, int source) {
  return lockstep_from(x, unsigned(source) & 31u);
}
template <class T>
static inline T __shfl_down_sync(unsigned, T x, unsigned distance) {
  const unsigned lane = threadIdx.x & 31u;
  return lockstep_from(x, lane + distance < 32u ? lane + distance : lane);
}
template <class T>
static inline T __shfl_up_sync(unsigned, T x, unsigned distance) {
  const unsigned lane = threadIdx.x & 31u;
  return lockstep_from(x, lane >= distance ? lane - distance : lane);
}
template <class T>
static inline T __shfl_xor_sync(unsigned, T x, int mask) {
  return lockstep_from(x, (threadIdx.x & 31u) ^ unsigned(mask));
}

template <class T>
static inline T atomicAdd(T* at, T x) {
  const T before = *at;
  *at = before + x;
  return before;
}
static inline unsigned atomicOr(unsigned* at, unsigned x) {
  const unsigned before = *at;
  *at = before | x;
  return before;
}
static inline unsigned atomicCAS(unsigned* at, unsigned compare, unsigned x) {
  const unsigned before = *at;
  if (before == compare) *at = x;
  return before;
}
static inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
static inline int __ffs(int x) {
  return __builtin_ffs(x);
}
