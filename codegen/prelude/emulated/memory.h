// memory.h: CUDA's atomics, fences and named loads. Needs hooks.h.

// In the order of enum AtomicOp in codegen/emulator/module.h.
enum CinchEmulatedAtomic {
  kCinchAtomicLoad,
  kCinchAtomicStore,
  kCinchAtomicExchange,
  kCinchAtomicCompareExchange,
  kCinchAtomicAdd,
  kCinchAtomicAnd,
  kCinchAtomicOr,
  kCinchAtomicXor,
  kCinchAtomicMin,
  kCinchAtomicMax,
  kCinchAtomicMinSigned,
  kCinchAtomicMaxSigned,
  kCinchAtomicAddFloat
};

template <class T>
CINCH_EMULATED_FN T cinch_emulated_update(unsigned op, T* at, T x, T compare = T()) {
  return cinch_emulated_value<T>(cinch_emulated_atomic(op, at, sizeof(T), cinch_emulated_word(x),
                                                       cinch_emulated_word(compare), 0));
}

#define CINCH_EMULATED_ATOMIC(name, op, T)      \
  CINCH_EMULATED_FN T name(T* at, T x) {        \
    return cinch_emulated_update<T>(op, at, x); \
  }
#define CINCH_EMULATED_ATOMIC_BITS(name, op) \
  CINCH_EMULATED_ATOMIC(name, op, int)       \
  CINCH_EMULATED_ATOMIC(name, op, unsigned)  \
  CINCH_EMULATED_ATOMIC(name, op, unsigned long long)
CINCH_EMULATED_ATOMIC_BITS(atomicAdd, kCinchAtomicAdd)
CINCH_EMULATED_ATOMIC(atomicAdd, kCinchAtomicAddFloat, float)
CINCH_EMULATED_ATOMIC(atomicAdd, kCinchAtomicAddFloat, double)
CINCH_EMULATED_ATOMIC_BITS(atomicAnd, kCinchAtomicAnd)
CINCH_EMULATED_ATOMIC_BITS(atomicOr, kCinchAtomicOr)
CINCH_EMULATED_ATOMIC_BITS(atomicXor, kCinchAtomicXor)
CINCH_EMULATED_ATOMIC_BITS(atomicExch, kCinchAtomicExchange)
CINCH_EMULATED_ATOMIC(atomicExch, kCinchAtomicExchange, float)
CINCH_EMULATED_ATOMIC(atomicMin, kCinchAtomicMinSigned, int)
CINCH_EMULATED_ATOMIC(atomicMin, kCinchAtomicMinSigned, long long)
CINCH_EMULATED_ATOMIC(atomicMin, kCinchAtomicMin, unsigned)
CINCH_EMULATED_ATOMIC(atomicMin, kCinchAtomicMin, unsigned long long)
CINCH_EMULATED_ATOMIC(atomicMax, kCinchAtomicMaxSigned, int)
CINCH_EMULATED_ATOMIC(atomicMax, kCinchAtomicMaxSigned, long long)
CINCH_EMULATED_ATOMIC(atomicMax, kCinchAtomicMax, unsigned)
CINCH_EMULATED_ATOMIC(atomicMax, kCinchAtomicMax, unsigned long long)
#undef CINCH_EMULATED_ATOMIC_BITS
#undef CINCH_EMULATED_ATOMIC
CINCH_EMULATED_FN int atomicSub(int* at, int x) {
  return atomicAdd(at, int(0u - unsigned(x)));
}
CINCH_EMULATED_FN unsigned atomicSub(unsigned* at, unsigned x) {
  return atomicAdd(at, 0u - x);
}

#define CINCH_EMULATED_CAS(T)                                                     \
  CINCH_EMULATED_FN T atomicCAS(T* at, T compare, T x) {                          \
    return cinch_emulated_update<T>(kCinchAtomicCompareExchange, at, x, compare); \
  }
CINCH_EMULATED_CAS(int)
CINCH_EMULATED_CAS(unsigned)
CINCH_EMULATED_CAS(unsigned short)
CINCH_EMULATED_CAS(unsigned long long)
#undef CINCH_EMULATED_CAS

CINCH_EMULATED_FN bool __isGlobal(const void*) {
  return true;
}
CINCH_EMULATED_FN void __threadfence() {
  cinch_emulated_fence(0);
}
CINCH_EMULATED_FN void __threadfence_block() {
  cinch_emulated_fence(0);
}
CINCH_EMULATED_FN void __threadfence_system() {
  cinch_emulated_fence(0);
}

// NVRTC's atomics with orders. An order is a fence before or after the access.
#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4

CINCH_EMULATED_FN void cinch_emulated_release(int order) {
  if (order >= __NV_ATOMIC_RELEASE) cinch_emulated_fence(0);
}
CINCH_EMULATED_FN void cinch_emulated_acquire(int order) {
  if (order != __NV_ATOMIC_RELAXED && order != __NV_ATOMIC_RELEASE) cinch_emulated_fence(0);
}
template <class T>
CINCH_EMULATED_FN T cinch_emulated_ordered(unsigned op, T* at, T x, int order) {
  cinch_emulated_release(order);
  const T before = cinch_emulated_update<T>(op, at, x);
  cinch_emulated_acquire(order);
  return before;
}
template <class T>
struct CinchEmulatedPlain {
  using Type = T;
};
template <class T>
struct CinchEmulatedPlain<const T> {
  using Type = T;
};
template <class T>
struct CinchEmulatedPlain<volatile T> {
  using Type = T;
};
template <class T>
struct CinchEmulatedPlain<const volatile T> {
  using Type = T;
};
template <class T>
using CinchEmulatedValue = typename CinchEmulatedPlain<T>::Type;

template <class T>
CINCH_EMULATED_FN auto __nv_atomic_load_n(T* at, int order, int = __NV_THREAD_SCOPE_SYSTEM) {
  using Value = CinchEmulatedValue<T>;
  return cinch_emulated_ordered<Value>(kCinchAtomicLoad, const_cast<Value*>(at), Value(), order);
}
template <class T>
CINCH_EMULATED_FN void __nv_atomic_store_n(T* at, CinchEmulatedValue<T> x, int order,
                                           int = __NV_THREAD_SCOPE_SYSTEM) {
  using Value = CinchEmulatedValue<T>;
  cinch_emulated_ordered<Value>(kCinchAtomicStore, const_cast<Value*>(at), x, order);
}
#define CINCH_EMULATED_FETCH(name, op)                                \
  template <class T>                                                  \
  CINCH_EMULATED_FN T name(T* at, CinchEmulatedValue<T> x, int order, \
                           int = __NV_THREAD_SCOPE_SYSTEM) {          \
    return cinch_emulated_ordered<T>(op, at, x, order);               \
  }
CINCH_EMULATED_FETCH(__nv_atomic_exchange_n, kCinchAtomicExchange)
CINCH_EMULATED_FETCH(__nv_atomic_fetch_add, kCinchAtomicAdd)
CINCH_EMULATED_FETCH(__nv_atomic_fetch_and, kCinchAtomicAnd)
CINCH_EMULATED_FETCH(__nv_atomic_fetch_or, kCinchAtomicOr)
CINCH_EMULATED_FETCH(__nv_atomic_fetch_xor, kCinchAtomicXor)
CINCH_EMULATED_FETCH(__nv_atomic_fetch_min, T(-1) < T(0) ? kCinchAtomicMinSigned : kCinchAtomicMin)
CINCH_EMULATED_FETCH(__nv_atomic_fetch_max, T(-1) < T(0) ? kCinchAtomicMaxSigned : kCinchAtomicMax)
#undef CINCH_EMULATED_FETCH

// The emulator does not model which cache serves an access.
#define CINCH_EMULATED_LOAD(name)         \
  template <class T>                      \
  CINCH_EMULATED_FN T name(const T* at) { \
    return *at;                           \
  }
CINCH_EMULATED_LOAD(__ldg)
CINCH_EMULATED_LOAD(__ldca)
CINCH_EMULATED_LOAD(__ldcg)
CINCH_EMULATED_LOAD(__ldcs)
CINCH_EMULATED_LOAD(__ldlu)
CINCH_EMULATED_LOAD(__ldcv)
#undef CINCH_EMULATED_LOAD
#define CINCH_EMULATED_STORE(name)          \
  template <class T>                        \
  CINCH_EMULATED_FN void name(T* at, T x) { \
    *at = x;                                \
  }
CINCH_EMULATED_STORE(__stwb)
CINCH_EMULATED_STORE(__stcg)
CINCH_EMULATED_STORE(__stcs)
CINCH_EMULATED_STORE(__stwt)
#undef CINCH_EMULATED_STORE

CINCH_EMULATED_FN void __trap() {
  cinch_emulated_trap(0);
}

// The code generator calls this to copy larger structs, and no library provides it.
extern "C" {
__device__ __attribute__((weak, no_builtin)) void* memcpy(void* to, const void* from,
                                                          unsigned long size) {
  auto* bytes = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = source[i];
  return to;
}
__device__ __attribute__((weak, no_builtin)) void* memset(void* to, int value, unsigned long size) {
  auto* bytes = static_cast<unsigned char*>(to);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(value);
  return to;
}
}
