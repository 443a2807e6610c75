// Accesses that are wrong by themselves: each planted fault is found at its line under every
// schedule, and a twin without it is clean.
#include "tests/unit/codegen/emulator/emulated.h"

namespace cinch::emulator {
namespace {

// ---- out of bounds ----

TEST(EmulatorFaults, ReadsBehindTheEnd) {
  planted({.kind = FindingKind::OutOfBounds, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) out[at] = in[at FAULT(+ 1)];  // here
})"});
}

TEST(EmulatorFaults, WritesBeforeTheBeginning) {
  planted({.kind = FindingKind::OutOfBounds, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  const int x = in[at];
  *(out + at FAULT(- 1)) = x;  // here
})"});
}

TEST(EmulatorFaults, ReadsANullPointer) {
  planted({.kind = FindingKind::OutOfBounds, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  const int* from = n == 0 FAULT(|| true) ? nullptr : in;
  if (threadIdx.x == 0) out[blockIdx.x] = *from;  // here
})"});
}

TEST(EmulatorFaults, ReadsFourElementsAcrossTheEnd) {
  planted({.kind = FindingKind::OutOfBounds,
           .text = R"(
struct __align__(8) Two { int x, y; };
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  const unsigned at = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (at + 2 <= n FAULT(|| at == 1022)) {
    const Two two = *reinterpret_cast<const Two*>(in + at);  // here
    out[at] = two.x;
  }
})",
           .n = 1023});
}

TEST(EmulatorFaults, WritesBehindSharedMemory) {
  planted({.kind = FindingKind::OutOfBounds, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ int a[64], b[64];
  b[threadIdx.x] = 0;
  a[FAULT(threadIdx.x == 63 ? 64 :) threadIdx.x] = in[0];  // here
  out[blockIdx.x * blockDim.x + threadIdx.x] = a[threadIdx.x];
})"});
}

TEST(EmulatorFaults, ReadsBehindDynamicSharedMemory) {
  planted({.kind = FindingKind::OutOfBounds,
           .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  extern __shared__ int own[];
  own[threadIdx.x] = in[threadIdx.x];
  out[blockIdx.x * blockDim.x + threadIdx.x] = own[FAULT(threadIdx.x == 63 ? 66 :) threadIdx.x];  // here
})",
           .shared_bytes = 256});
}

// ---- alignment ----

TEST(EmulatorFaults, MisalignedWord) {
  planted({.kind = FindingKind::Misaligned, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  const char* bytes = reinterpret_cast<const char*>(in) FAULT(+ 2);
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at + 1 < n) out[at] = *reinterpret_cast<const int*>(bytes + 4 * at);  // here
})"});
}

// As one access: taken apart it would be aligned.
TEST(EmulatorFaults, MisalignedFloat4) {
  planted({.kind = FindingKind::Misaligned, .text = R"(
extern "C" __global__ void k(float* out, const float* in, unsigned n) {
  const unsigned at = 4 * (blockIdx.x * blockDim.x + threadIdx.x) FAULT(+ 2);
  if (at + 4 <= n) {
    const float4 x = *reinterpret_cast<const float4*>(in + at);  // here
    out[at] = x.x + x.w;
  }
})"});
}

TEST(EmulatorFaults, MisalignedSharedFloat4) {
  planted({.kind = FindingKind::Misaligned, .text = R"(
extern "C" __global__ void k(float* out, const float* in, unsigned n) {
  __shared__ __align__(16) float own[260];
  if (threadIdx.x < 64) {
    *reinterpret_cast<float4*>(own + 4 * threadIdx.x FAULT(+ 1)) =  // here
        make_float4(1, 2, 3, 4);
    out[blockIdx.x * blockDim.x + threadIdx.x] = own[4 * threadIdx.x + 1];
  }
})"});
}

// ---- what was never written ----

TEST(EmulatorFaults, ReadsGlobalMemoryThatNobodyWrote) {
  planted({.kind = FindingKind::Uninitialised, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  FAULT(if (at != 77)) out[at] = in[at];
  out[at] += 1;  // here
})"});
}

TEST(EmulatorFaults, ReadsSharedMemoryThatNobodyWrote) {
  planted({.kind = FindingKind::Uninitialised, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ int own[64];
  if (threadIdx.x < 64 FAULT(- 1)) own[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = own[63 - threadIdx.x];  // here
})"});
}

// A block does not inherit what an earlier one left in the same place.
TEST(EmulatorFaults, SharedMemoryOfAnEarlierBlock) {
  planted({.kind = FindingKind::Uninitialised, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  __shared__ int own;
  if (threadIdx.x == 0) {
    FAULT(if (blockIdx.x % 2 == 0)) own = in[0];
    out[blockIdx.x] = own;  // here
  }
})"});
}

TEST(EmulatorFaults, Traps) {
  planted({.kind = FindingKind::Trap, .text = R"(
extern "C" __global__ void k(int* out, const int* in, unsigned n) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) out[at] = in[at];
  FAULT(if (at == 99) __trap();)  // here
})"});
}

// ---- memory that was given back ----

TEST(EmulatorFaults, UseAfterFree) {
  const Module* module = compile(R"(
extern "C" __global__ void k(int* out, const int* in) { *out = *in; })",
                                 {"k"});
  ASSERT_TRUE(module);
  Gpu gpu;
  const Array<int> out(gpu, 1);
  const Array<int> in(gpu, std::vector<int>{7});
  Params params(out.get(), in.get());
  ASSERT_TRUE(gpu.launch(*module, "k", params.data(), {1}, {1}));
  EXPECT_EQ(out.read()[0], 7);
  ASSERT_TRUE(gpu.free(in.get()));
  const auto status = gpu.launch(*module, "k", params.data(), {1}, {1});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, rt::ErrorKind::CheckFailed);
  ASSERT_EQ(gpu.findings().size(), 1u);
  EXPECT_EQ(gpu.findings()[0].kind, FindingKind::UseAfterFree);
  EXPECT_EQ(gpu.findings()[0].line, 2);
  EXPECT_NE(gpu.findings()[0].text.find("byte 0 of a freed allocation of 4 bytes"),
            std::string::npos)
      << gpu.findings()[0].text;
}

}  // namespace
}  // namespace cinch::emulator
