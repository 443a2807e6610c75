// Accesses that nothing orders, threads that do not meet, threads that wait for ever: each planted
// fault is found at its line under every schedule, and a twin without it is clean.
#include "tests/unit/codegen/emulator/emulated.h"

namespace cinch::emulator {
namespace {

// ---- races ----

TEST(EmulatorOrder, MissingBarrier) {
  planted({.kind = FindingKind::Race, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ int own[64];
  own[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const int x = own[63 - threadIdx.x];  // here
  RIGHT(__syncthreads();)
  own[threadIdx.x] = x;  // here
})"});
}

TEST(EmulatorOrder, MissingSyncwarpWithinAWarp) {
  planted({.kind = FindingKind::Race, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ int own[64];
  const unsigned other = threadIdx.x ^ 1u;
  own[threadIdx.x] = in[threadIdx.x];
  FAULT(__shfl_sync(0xffffffffu, 1, 0);) RIGHT(__syncwarp();)
  if (threadIdx.x % 2 == 0) out[blockIdx.x * blockDim.x + threadIdx.x] = own[other];  // here
})"});
}

// __syncwarp orders lanes of one warp, not two warps.
TEST(EmulatorOrder, SyncwarpBetweenWarps) {
  planted({.kind = FindingKind::Race, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ int own[64];
  own[threadIdx.x] = in[threadIdx.x];  // here
  FAULT(__syncwarp();) RIGHT(__syncthreads();)
  if (threadIdx.x >= 32) own[threadIdx.x - 32] = 3;  // here
})"});
}

// Half of a warp waits for itself; the other half's writes are another matter.
TEST(EmulatorOrder, SyncwarpOfTooFewLanes) {
  planted({.kind = FindingKind::Race,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ int own[32];
  const unsigned half = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  own[threadIdx.x] = in[threadIdx.x];  // here
  __syncwarp(FAULT(half));
  if (threadIdx.x == 0) own[1] = 0;
  if (threadIdx.x == 2) own[20] = 0;  // here
})",
           .block = 32});
}

TEST(EmulatorOrder, BytesOfOneWordAreApart) {
  planted({.kind = FindingKind::Race, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  unsigned char* bytes = reinterpret_cast<unsigned char*>(out);
  bytes[blockIdx.x * blockDim.x + threadIdx.x FAULT(/ 2)] = 1;  // here
})"});
}

TEST(EmulatorOrder, BlocksWriteOneElement) {
  planted({.kind = FindingKind::Race, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  if (threadIdx.x == 0) out[FAULT(0 *) blockIdx.x] = 5;  // here
})"});
}

const char* const kFlags = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  volatile int* flag = out;
  int* data = out + 64;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = in[5];
    RELEASE;
    *flag = 1;
  } else if (*flag == 1) {
    ACQUIRE;
    out[128 + blockIdx.x] = *data;  // here
  }
})";

std::string flags_with(const std::string& release, const std::string& acquire) {
  std::string text = kFlags;
  text.replace(text.find("RELEASE"), 7, release);
  text.replace(text.find("ACQUIRE"), 7, acquire);
  return text;
}

// Only a schedule in which a later block sees the flag shows this: many blocks come later.
TEST(EmulatorOrder, MissingFenceBeforeAFlag) {
  planted({.kind = FindingKind::Race,
           .text = flags_with("RIGHT(__threadfence())", "__threadfence()"),
           .blocks = 200,
           .zeroes_out = true});
}

TEST(EmulatorOrder, MissingFenceBehindAFlag) {
  planted({.kind = FindingKind::Race,
           .text = flags_with("__threadfence()", "RIGHT(__threadfence())"),
           .blocks = 200,
           .zeroes_out = true});
}

TEST(EmulatorOrder, AtomicsWithOrders) {
  planted({.kind = FindingKind::Race,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  int* data = out + 64;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = in[5];
    __nv_atomic_store_n(out, 1, FAULT(0 *) __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  } else if (__nv_atomic_load_n(out, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) == 1) {
    out[128 + blockIdx.x] = *data;  // here
  }
})",
           .blocks = 200,
           .zeroes_out = true});
}

// A fence speaks for its own thread: the others' writes take a barrier before it.
TEST(EmulatorOrder, FenceWithoutTheBlocksBarrier) {
  planted({.kind = FindingKind::Race,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ bool is_last;
  unsigned* count = reinterpret_cast<unsigned*>(out);
  int* parts = out + 64;
  if (threadIdx.x < 32) parts[32 * blockIdx.x + threadIdx.x] = in[threadIdx.x];  // here
  RIGHT(__syncthreads();)
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(count, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < 32 * gridDim.x; ++i) {
      sum += parts[i];  // here
    }
    out[1] = sum;
  }
})",
           .zeroes_out = true});
}

TEST(EmulatorOrder, PlainReadOfAnAtomicCounter) {
  planted({.kind = FindingKind::Race,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  atomicAdd(out, 1); const int seen = FAULT(*out) RIGHT(atomicAdd(out, 0));  // here
  if (seen < 0) out[1] = 1;
})",
           .zeroes_out = true});
}

// ---- barriers and warps ----

TEST(EmulatorOrder, BarrierForSomeThreads) {
  planted({.kind = FindingKind::DivergentBarrier, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  if (threadIdx.x < 64 FAULT(- 16)) {
    __syncthreads();  // here
  }
})"});
}

TEST(EmulatorOrder, TwoBarriers) {
  planted({.kind = FindingKind::DivergentBarrier,
           .text = R"(
__device__ __forceinline__ void barrier() {
  __syncthreads();  // here
}
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  if (threadIdx.x == 1 RIGHT(&& false)) {
    barrier();
  } else {
    barrier();
  }
})",
           .block = 32});
}

TEST(EmulatorOrder, ShuffleOfHalfAWarp) {
  planted({.kind = FindingKind::DivergentWarp, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  int x = in[threadIdx.x];
  if (threadIdx.x % 32 < 16) {
    x += __shfl_down_sync(0xffffu FAULT(| 0xffff0000u), x, 1, 16);  // here
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
})"});
}

TEST(EmulatorOrder, MaskWithoutItsOwnLane) {
  planted({.kind = FindingKind::DivergentWarp,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  const unsigned mask = 0xffffffffu FAULT(- 8);
  out[blockIdx.x * blockDim.x + threadIdx.x] = int(__ballot_sync(mask, 1));  // here
})",
           .says = "leaves out its own lane"});
}

TEST(EmulatorOrder, ShuffleFromALaneThatIsNotThere) {
  planted({.kind = FindingKind::DivergentWarp, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  if (threadIdx.x % 32 < 16) {
    out[threadIdx.x + 64 * blockIdx.x] = __shfl_sync(0xffffu, in[0], 3 FAULT(+ 16));  // here
  }
})"});
}

TEST(EmulatorOrder, OneHalfAtABarrierOneInAShuffle) {
  planted({.kind = FindingKind::DivergentWarp,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  FAULT(if (threadIdx.x >= 16) __syncthreads();)
  __shfl_sync(0xffffffffu, 1, 0);  // here
  RIGHT(__syncthreads();)
})",
           .block = 32});
}

// ---- waiting for ever ----

// Blocks wait for the one before them; in an order of their indices a later block may run first.
const std::string kChain = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ int ticket;
  volatile int* flags = out + 1;
  if (threadIdx.x == 0) ticket = FAULT(int(blockIdx.x)) RIGHT(atomicAdd(out, 1));
  __syncthreads();
  if (threadIdx.x == 0 && ticket > 0) {
    while (flags[ticket - 1] == 0) {  // here
    }
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    flags[ticket] = 1;
  }
})";

TEST(EmulatorOrder, LookBackByBlockIndex) {
  planted({.kind = FindingKind::Hang,
           .text = kChain,
           .blocks = 60,
           .says = "blocks have not begun",
           .zeroes_out = true,
           .error = rt::ErrorKind::Internal});
}

TEST(EmulatorOrder, FlagThatIsNeverSet) {
  planted({.kind = FindingKind::Hang,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  volatile int* flag = out;
  if (threadIdx.x == 0 && blockIdx.x == 0) *flag = 1 FAULT(- 1);
  if (threadIdx.x == 33) {
    while (*flag == 0) {  // here
    }
  }
})",
           .blocks = 1,
           .zeroes_out = true,
           .error = rt::ErrorKind::Internal});
}

TEST(EmulatorOrder, LoopWithoutEnd) {
  planted({.kind = FindingKind::Hang,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  unsigned i = in[3];
  while (i < 10) {  // here
    i += 1 FAULT(- 1);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = int(i);
})",
           .error = rt::ErrorKind::Internal});
}

}  // namespace
}  // namespace cinch::emulator
