// One emulated device: memory, shapes of launches, modules, schedules.
#include <algorithm>
#include <thread>

#include "codegen/jit/clang_jit.h"
#include "runtime/core/check.h"
#include "tests/unit/codegen/emulator/emulated.h"

namespace cinch::emulator {
namespace {

using rt::ErrorKind;

template <class T>
ErrorKind kind_of(const rt::Result<T>& result) {
  EXPECT_FALSE(result);
  return result ? ErrorKind::Internal : result.error().kind;
}

TEST(EmulatedDevice, HasOnlySoMuchMemory) {
  Gpu gpu({.memory_bytes = 1000});
  const auto first = gpu.allocate(600);
  ASSERT_TRUE(first);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*first) % 256, 0u);
  EXPECT_EQ(kind_of(gpu.allocate(401)), ErrorKind::OutOfMemory);
  const auto second = gpu.allocate(400);
  ASSERT_TRUE(second);
  EXPECT_EQ(gpu.allocated_bytes(), 1000u);
  EXPECT_TRUE(gpu.free(*first));
  EXPECT_TRUE(gpu.allocate(600));
  EXPECT_TRUE(gpu.allocate(0));
}

TEST(EmulatedDevice, FreesWhatItGave) {
  Gpu gpu;
  int here = 0;
  const auto memory = gpu.allocate(64);
  ASSERT_TRUE(memory);
  EXPECT_EQ(kind_of(gpu.free(static_cast<char*>(*memory) + 1)), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of(gpu.free(&here)), ErrorKind::InvalidArgument);
  EXPECT_TRUE(gpu.free(*memory));
  EXPECT_EQ(kind_of(gpu.free(*memory)), ErrorKind::InvalidArgument);
}

// Addresses run out long before launches do.
TEST(EmulatedDevice, UsesAddressesAgain) {
  Gpu gpu({.memory_bytes = 1 << 20});
  const auto kept = gpu.allocate(1000);
  ASSERT_TRUE(kept);
  for (int i = 0; i < 200; ++i) {
    const auto memory = gpu.allocate(1 << 19);
    ASSERT_TRUE(memory) << i;
    EXPECT_FALSE(gpu.is_initialised(*memory, 1));
    EXPECT_TRUE(gpu.fill(*memory, 1, 1 << 19));
    EXPECT_TRUE(gpu.free(*memory));
  }
  EXPECT_TRUE(gpu.contains(*kept, 1000));
}

TEST(EmulatedDevice, CopiesStayInsideAndCarryWhatWasWritten) {
  Gpu gpu;
  auto* const a = static_cast<char*>(gpu.allocate(100).value());
  auto* const b = static_cast<char*>(gpu.allocate(100).value());
  const std::vector<char> host(100, 'x');
  std::vector<char> back(100);
  EXPECT_EQ(kind_of(gpu.copy_to(a + 1, host.data(), 100)), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of(gpu.copy_from(back.data(), a - 1, 2)), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of(gpu.copy(b + 50, a, 51)), ErrorKind::InvalidArgument);
  EXPECT_EQ(kind_of(gpu.fill(b, 0, 101)), ErrorKind::InvalidArgument);
  EXPECT_TRUE(gpu.contains(a, 100) && gpu.contains(a + 100, 0));
  EXPECT_FALSE(gpu.contains(a, 101) || gpu.contains(host.data(), 1));
  EXPECT_TRUE(gpu.copy_to(a + 10, host.data(), 20));
  EXPECT_TRUE(gpu.copy(b, a, 40));
  EXPECT_TRUE(gpu.is_initialised(b + 10, 20));
  EXPECT_FALSE(gpu.is_initialised(b + 9, 1) || gpu.is_initialised(b + 10, 21));
  EXPECT_TRUE(gpu.copy_from(back.data(), b + 10, 20));
  EXPECT_EQ(std::count(back.begin(), back.end(), 'x'), 20);
  EXPECT_TRUE(gpu.mark_initialised(b, 100) && gpu.is_initialised(b, 100));
  EXPECT_TRUE(gpu.mark_uninitialised(b + 5, 1));
  EXPECT_FALSE(gpu.is_initialised(b, 100));
}

// Parameters of all sorts, in no namespace and in `cinch`; shared arrays of templates.
TEST(EmulatedDevice, TakesKernelsOfAnySignature) {
  const Module* module = compile(R"(
struct Big { int at[40]; double x; };
template <class T, int N>
__device__ T reversed(T x) {
  __shared__ T all[N];
  all[threadIdx.x] = x;
  __syncthreads();
  return all[N - 1 - threadIdx.x];
}
extern "C" __global__ void none() {}
extern "C" __global__ void many(char a, const __grid_constant__ Big big, double b, long long* out,
                                short c, bool d) {
  out[threadIdx.x] = a + big.at[39] + (long long)big.x + (long long)b + c + d +
                     reversed<int, 32>(threadIdx.x) + reversed<double, 32>(threadIdx.x);
}
namespace cinch {
__device__ const int table[4] = {5, 6, 7, 8};
extern "C" __global__ void named(int* out, const int* from) {
  const int* at = from ? from : table;
  out[threadIdx.z] = at[blockIdx.y + 2 * blockIdx.z] + int(gridDim.z * blockDim.z * threadIdx.z);
}
})",
                                 {"none", "many", "named"});
  ASSERT_TRUE(module);
  EXPECT_EQ(module->kernels(), (std::vector<std::string>{"none", "many", "named"}));
  struct Big {
    int at[40] = {};
    double x = 1000;
  } big;
  big.at[39] = 20;
  Gpu gpu;
  EXPECT_TRUE(gpu.launch(*module, "none", nullptr, {3}, {40}));
  const Array<long long> out(gpu, 32);
  Params params(char{3}, big, 400.0, out.get(), short{-7}, true);
  auto status = gpu.launch(*module, "many", params.data(), {1}, {32});
  ASSERT_TRUE(status) << status.error().message;
  for (long long i = 0; i < 32; ++i) {
    EXPECT_EQ(out.read()[static_cast<std::size_t>(i)], 3 + 20 + 1000 + 400 - 7 + 1 + 2 * (31 - i));
  }
  const Array<int> small(gpu, 2);
  const int* nowhere = nullptr;
  Params places(small.get(), nowhere);
  status = gpu.launch(*module, "named", places.data(), {1, 1, 1}, {1, 1, 2});
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(small.read(), (std::vector<int>{5, 7}));
}

TEST(EmulatedDevice, RefusesShapes) {
  const Module* module = compile(R"(
extern "C" __global__ void k() { __shared__ char a[40000]; a[0] = 1; })",
                                 {"k"});
  ASSERT_TRUE(module);
  Gpu gpu;
  const auto launch = [&](const char* kernel, Dim grid, Dim block, std::size_t shared) {
    return kind_of(gpu.launch(*module, kernel, nullptr, grid, block, shared));
  };
  EXPECT_EQ(launch("other", {1}, {1}, 0), ErrorKind::InvalidArgument);
  EXPECT_EQ(launch("k", {0}, {1}, 0), ErrorKind::InvalidArgument);
  EXPECT_EQ(launch("k", {1}, {32, 33}, 0), ErrorKind::InvalidArgument);
  EXPECT_EQ(launch("k", {1, 1u << 31, 1u << 31}, {1}, 0), ErrorKind::InvalidArgument);
  EXPECT_EQ(launch("k", {1}, {1}, 9153), ErrorKind::InvalidArgument);
  EXPECT_TRUE(gpu.launch(*module, "k", nullptr, {1}, {1}, 9152));
  EXPECT_TRUE(gpu.launch(*module, "k", nullptr, {2}, {1}));
}

TEST(EmulatedDevice, RefusesWhatIsNoModule) {
  const std::vector<std::uint8_t> bytes(100, 7);
  EXPECT_EQ(kind_of(Module::load(bytes)), ErrorKind::CorruptFile);
}

TEST(EmulatedDevice, RefusesDeviceVariables) {
  codegen::KernelSource source;
  source.text = "__device__ int counter;\nextern \"C\" __global__ void k() { counter = 1; }\n";
  source.symbols = {"k"};
  EXPECT_THROW((void)codegen::compile_emulated(source), InternalError);
}

TEST(EmulatedDevice, RefusesFramesThatNoStackHolds) {
  codegen::KernelSource source;
  source.symbols = {"k"};
  const auto text_with = [](const std::string& size) {
    return "extern \"C\" __global__ void k(int* out, int n) {\n"
           "  int own[" +
           size +
           "];\n"
           "  for (int i = 0; i < n; ++i) own[i] = i;\n"
           "  for (int i = 0; i < n; ++i) out[i] = own[n - 1 - i];\n"
           "}\n";
  };
  source.text = text_with("40000");
  EXPECT_THROW((void)codegen::compile_emulated(source), InternalError);
  source.text = text_with("30000");
  EXPECT_TRUE(codegen::compile_emulated(source));
}

// Memory captured by a lambda is its thread's own: nothing is found there, and nothing reported.
TEST(EmulatedDevice, LambdasReachTheirThreadsVariables) {
  const Module* module = compile(R"(
template <class Join>
__device__ __noinline__ void apart(int* out, Join join) {
  out[threadIdx.x] = join(3);
}
extern "C" __global__ void k(int* out) {
  int own[4] = {1, 2, 3, int(threadIdx.x)};
  int last = 0;
  const auto add = [&](const int& x) { return own[x] + ++last; };
  out[threadIdx.x] = add(3) + add(1);
  apart(out, [&](int x) { return own[x] + out[threadIdx.x] + last; });
})",
                                 {"k"});
  ASSERT_TRUE(module);
  Gpu gpu;
  const Array<int> out(gpu, 40);
  Params params(out.get());
  const auto status = gpu.launch(*module, "k", params.data(), {1}, {40});
  ASSERT_TRUE(status) << status.error().message;
  for (int i = 0; i < 40; ++i) EXPECT_EQ(out.read()[static_cast<std::size_t>(i)], 2 * i + 7);
}

// Which block takes which ticket is the schedule's: the same for a seed, other for another.
TEST(EmulatedDevice, SeedsRepeatSchedules) {
  const Module* module = compile(R"(
extern "C" __global__ void k(unsigned* order, unsigned* count) {
  order[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(count, 1u);
})",
                                 {"k"});
  ASSERT_TRUE(module);
  const auto run = [&](std::uint64_t seed, int launches) {
    Gpu gpu({.schedule_seed = seed});
    std::vector<std::uint32_t> all;
    for (int i = 0; i < launches; ++i) {
      const Array<std::uint32_t> order(gpu, 640);
      Array<std::uint32_t> count(gpu, 1);
      count.zero();
      Params params(order.get(), count.get());
      EXPECT_TRUE(gpu.launch(*module, "k", params.data(), {10}, {64}));
      const auto found = order.read();
      all.insert(all.end(), found.begin(), found.end());
    }
    return all;
  };
  const auto first = run(1, 2);
  EXPECT_EQ(first, run(1, 2));
  EXPECT_NE(first, run(2, 2));
  EXPECT_FALSE(std::equal(first.begin(), first.begin() + 640, first.begin() + 640));
}

// A launch that was cut off leaves nothing behind; findings stay until they are cleared.
TEST(EmulatedDevice, WorksOnAfterFaults) {
  const Module* module = compile(R"(
extern "C" __global__ void k(int* out, int at) {
  __shared__ int own[64];
  own[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 40) out[at] = own[63];
  __syncthreads();
})",
                                 {"k"});
  ASSERT_TRUE(module);
  Gpu gpu;
  const Array<int> out(gpu, 4);
  for (int round = 0; round < 3; ++round) {
    Params wrong(out.get(), 4), right(out.get(), 3);
    EXPECT_EQ(kind_of(gpu.launch(*module, "k", wrong.data(), {1}, {64})), ErrorKind::CheckFailed);
    EXPECT_TRUE(gpu.launch(*module, "k", right.data(), {1}, {64}));
  }
  EXPECT_EQ(gpu.findings().size(), 3u);
  EXPECT_EQ(gpu.findings()[0].text,
            "out of bounds in k, line 6: if (threadIdx.x == 40) out[at] = own[63];\n"
            "  thread (40, 0, 0) of block (0, 0, 0) writes 4 bytes at 0 bytes behind the end of an "
            "allocation of 16 bytes");
  gpu.clear_findings();
  EXPECT_TRUE(gpu.findings().empty());
}

// Without checks the same text runs; so does a module with checks on a device without.
TEST(EmulatedDevice, RunsWithoutChecks) {
  const std::string text = R"(
extern "C" __global__ void k(int* out, const int* in) {
  __shared__ int own[64];
  own[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (atomicAdd(out + 64, 1) >= 0) out[threadIdx.x] = own[63 - threadIdx.x];
})";
  std::vector<int> values(64), expected(64);
  for (int i = 0; i < 64; ++i) values[63 - i] = expected[i] = i * i;
  for (const bool checks : {false, true}) {
    const Module* module = compile(text, {"k"}, checks);
    ASSERT_TRUE(module);
    EXPECT_EQ(module->has_checks(), checks);
    Gpu gpu({.checks = false});
    Array<int> out(gpu, 65);
    out.zero();
    const Array in(gpu, values);
    Params params(out.get(), in.get());
    ASSERT_TRUE(gpu.launch(*module, "k", params.data(), {1}, {64}));
    auto found = out.read();
    EXPECT_EQ(found.back(), 64);
    found.pop_back();
    EXPECT_EQ(found, expected);
  }
}

TEST(EmulatedDevice, LaunchesOfSeveralThreadsTakeTurns) {
  const Module* module = compile(R"(
extern "C" __global__ void k(unsigned* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = __shfl_xor_sync(0xffffffffu, threadIdx.x, 1);
})",
                                 {"k"});
  ASSERT_TRUE(module);
  std::vector<std::thread> threads;
  std::vector<int> passed(4);
  for (int& is_fine : passed) {
    threads.emplace_back([&is_fine, module] {
      Gpu gpu;
      const Array<std::uint32_t> out(gpu, 1280);
      Params params(out.get());
      is_fine = 1;
      for (int i = 0; i < 20 && is_fine; ++i) {
        is_fine = gpu.launch(*module, "k", params.data(), {20}, {64}) ? 1 : 0;
        const auto found = out.read();
        for (std::uint32_t j = 0; j < 1280; ++j) is_fine &= found[j] == (j % 64 ^ 1) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, std::vector<int>(4, 1));
}

}  // namespace
}  // namespace cinch::emulator
