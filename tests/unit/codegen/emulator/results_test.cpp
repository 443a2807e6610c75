// Results of parallel algorithms on the emulated GPU: correct, the same under every schedule, and
// without findings.
#include <algorithm>
#include <numeric>

#include "tests/unit/codegen/emulator/emulated.h"

namespace cinch::emulator {
namespace {

constexpr std::uint64_t kSeeds = 20;

// A float array that sums to something that depends on the order.
std::vector<float> some_floats(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>((i * 2654435761u) % 10007) / 7.0f - 600.0f;
  }
  return values;
}

// Each block: a fixed tree over its 1024 elements, with 16-byte loads.
const std::string kSum = R"(
__device__ __forceinline__ float tree(float x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_down_sync(0xffffffffu, x, d);
  return x;
}
extern "C" __global__ void __launch_bounds__(256) sums(const float* x, float* out, unsigned n) {
  __shared__ float part[8];
  const unsigned at = blockIdx.x * 1024 + 4 * threadIdx.x;
  float4 four = make_float4(0, 0, 0, 0);
  if (at + 4 <= n) {
    four = *reinterpret_cast<const float4*>(x + at);
  } else {
    if (at < n) four.x = x[at];
    if (at + 1 < n) four.y = x[at + 1];
    if (at + 2 < n) four.z = x[at + 2];
  }
  const float sum = tree((four.x + four.y) + (four.z + four.w));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = part[0];
    for (int i = 1; i < 8; ++i) all += part[i];
    out[blockIdx.x] = all;
  }
}
)";

float sum_of_block(const std::vector<float>& x, std::size_t begin) {
  float part[8];
  for (std::size_t warp = 0; warp < 8; ++warp) {
    float lane[32];
    for (std::size_t l = 0; l < 32; ++l) {
      float four[4] = {};
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t at = begin + 128 * warp + 4 * l + i;
        if (at < x.size()) four[i] = x[at];
      }
      lane[l] = (four[0] + four[1]) + (four[2] + four[3]);
    }
    for (int d = 16; d > 0; d /= 2) {
      for (int l = 0; l < d; ++l) lane[l] += lane[l + d];
    }
    part[warp] = lane[0];
  }
  return std::accumulate(part + 1, part + 8, part[0]);
}

TEST(EmulatorResults, OrderedSum) {
  const Module* module = compile(kSum, {"sums"});
  ASSERT_TRUE(module);
  for (const std::size_t n : {1u, 1000u, 5003u, 70001u}) {
    const std::vector<float> x = some_floats(n);
    const auto blocks = static_cast<std::uint32_t>((n + 1023) / 1024);
    std::vector<float> expected;
    for (std::size_t b = 0; b < blocks; ++b) expected.push_back(sum_of_block(x, 1024 * b));
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Gpu gpu({.schedule_seed = seed});
      const Array in(gpu, x);
      const Array<float> out(gpu, blocks);
      Params params(in.get(), out.get(), static_cast<unsigned>(n));
      const auto status = gpu.launch(*module, "sums", params.data(), {blocks}, {256});
      ASSERT_TRUE(status) << status.error().message;
      ASSERT_EQ(out.read(), expected) << "n " << n << ", seed " << seed;
    }
  }
}

// Positive elements, in order, in one pass: tickets, decoupled look-back over warps' totals.
const std::string kCompact = R"(
using u32 = unsigned;
using u64 = unsigned long long;
struct Args { const int* x; int* out; u32* count; u64* state; u32* tickets; u32 n; };
extern "C" __global__ void compact(const Args args) {
  __shared__ u32 ticket, warps[8], before;
  if (threadIdx.x == 0) ticket = atomicAdd(args.tickets, 1u);
  __syncthreads();
  const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const u32 at = ticket * 256 + threadIdx.x;
  const int x = at < args.n ? args.x[at] : 0;
  const u32 votes = __ballot_sync(0xffffffffu, x > 0);
  if (lane == 0) warps[warp] = __popc(votes);
  __syncthreads();
  if (threadIdx.x == 0) {
    u32 total = 0;
    for (int i = 0; i < 8; ++i) total += warps[i];
    volatile u64* state = args.state;
    u32 sum = 0;
    if (ticket == 0) {
      state[0] = (2ull << 32) | total;
    } else {
      state[ticket] = (1ull << 32) | total;
      for (u32 t = ticket; t > 0;) {
        u64 word = state[t - 1];
        if ((word >> 32) == 0) continue;
        sum += u32(word);
        if ((word >> 32) == 2) break;
        --t;
      }
      state[ticket] = (2ull << 32) | (sum + total);
    }
    before = sum;
    if (ticket == gridDim.x - 1) *args.count = sum + total;
  }
  __syncthreads();
  u32 place = before;
  for (u32 i = 0; i < warp; ++i) place += warps[i];
  if (x > 0) args.out[place + __popc(votes & ((1u << lane) - 1))] = x;
}
)";

TEST(EmulatorResults, CompactionByLookBack) {
  const Module* module = compile(kCompact, {"compact"});
  ASSERT_TRUE(module);
  struct Args {
    const int* x;
    int* out;
    std::uint32_t* count;
    std::uint64_t* state;
    std::uint32_t *tickets, n;
  };
  for (const std::uint32_t n : {1u, 255u, 4097u, 20000u}) {
    std::vector<int> x(n), expected;
    for (std::uint32_t i = 0; i < n; ++i) x[i] = static_cast<int>(i * 2654435761u) >> 7;
    std::copy_if(x.begin(), x.end(), std::back_inserter(expected), [](int v) { return v > 0; });
    const std::uint32_t blocks = (n + 255) / 256;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Gpu gpu({.schedule_seed = seed});
      const Array in(gpu, x);
      const Array<int> out(gpu, n);
      const Array<std::uint32_t> count(gpu, 1);
      Array<std::uint64_t> state(gpu, blocks);
      Array<std::uint32_t> tickets(gpu, 1);
      state.zero();
      tickets.zero();
      Params params(Args{in.get(), out.get(), count.get(), state.get(), tickets.get(), n});
      const auto status = gpu.launch(*module, "compact", params.data(), {blocks}, {256});
      ASSERT_TRUE(status) << status.error().message;
      std::vector<int> found = out.read();
      ASSERT_EQ(count.read()[0], expected.size());
      found.resize(expected.size());
      ASSERT_EQ(found, expected) << "n " << n << ", seed " << seed;
    }
  }
}

// 32 booleans a word.
const std::string kPack = R"(
extern "C" __global__ void pack(const int* x, unsigned* words, unsigned n) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned word = __ballot_sync(0xffffffffu, at < n && x[at] < 0);
  if (threadIdx.x % 32 == 0 && at < n) words[at / 32] = word;
}
)";

TEST(EmulatorResults, BallotPacking) {
  const Module* module = compile(kPack, {"pack"});
  ASSERT_TRUE(module);
  const std::uint32_t n = 5000;
  std::vector<int> x(n);
  std::vector<std::uint32_t> expected((n + 31) / 32);
  for (std::uint32_t i = 0; i < n; ++i) {
    x[i] = static_cast<int>(i * 2654435761u);
    if (x[i] < 0) expected[i / 32] |= 1u << (i % 32);
  }
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Gpu gpu({.schedule_seed = seed});
    const Array in(gpu, x);
    const Array<std::uint32_t> out(gpu, expected.size());
    Params params(in.get(), out.get(), n);
    const auto status = gpu.launch(*module, "pack", params.data(), {(n + 127) / 128}, {128});
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_EQ(out.read(), expected) << "seed " << seed;
  }
}

// Lanes of one bin add once; blocks join their bins by atomics.
const std::string kHistogram = R"(
extern "C" __global__ void histogram(const unsigned char* x, unsigned* bins, unsigned n) {
  extern __shared__ unsigned own[];
  for (unsigned i = threadIdx.x; i < 16; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (unsigned base = blockIdx.x * blockDim.x; base < n; base += gridDim.x * blockDim.x) {
    const unsigned at = base + threadIdx.x;
    const unsigned bin = at < n ? x[at] & 15u : 16u;
    const unsigned same = __match_any_sync(0xffffffffu, bin);
    if (bin < 16u && __ffs(int(same)) - 1 == int(threadIdx.x & 31u)) {
      atomicAdd(own + bin, unsigned(__popc(same)));
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 16; i += blockDim.x) atomicAdd(bins + i, own[i]);
}
)";

TEST(EmulatorResults, HistogramByMatching) {
  const Module* module = compile(kHistogram, {"histogram"});
  ASSERT_TRUE(module);
  const std::uint32_t n = 4001;
  std::vector<std::uint8_t> x(n);
  std::vector<std::uint32_t> expected(16);
  for (std::uint32_t i = 0; i < n; ++i) {
    x[i] = static_cast<std::uint8_t>((i * i) >> 3);
    ++expected[x[i] & 15];
  }
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Gpu gpu({.schedule_seed = seed});
    const Array in(gpu, x);
    Array<std::uint32_t> bins(gpu, 16);
    bins.zero();
    Params params(in.get(), bins.get(), n);
    const auto status = gpu.launch(*module, "histogram", params.data(), {5}, {96}, 64);
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_EQ(bins.read(), expected) << "seed " << seed;
  }
}

// The block that comes last adds what all have stored, in order.
const std::string kLastBlock = R"(
extern "C" __global__ void reduce(const float* x, float* parts, unsigned* arrived, float* out,
                                  unsigned n) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    float sum = 0;
    for (unsigned i = blockIdx.x; i < n; i += gridDim.x) sum += x[i];
    parts[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
    *out = sum;
  }
}
)";

TEST(EmulatorResults, LastBlockReduces) {
  const Module* module = compile(kLastBlock, {"reduce"});
  ASSERT_TRUE(module);
  const std::uint32_t n = 3000, blocks = 17;
  const std::vector<float> x = some_floats(n);
  float expected = 0;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    float sum = 0;
    for (std::uint32_t i = b; i < n; i += blocks) sum += x[i];
    expected += sum;
  }
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Gpu gpu({.schedule_seed = seed});
    const Array in(gpu, x);
    const Array<float> parts(gpu, blocks), out(gpu, 1);
    Array<std::uint32_t> arrived(gpu, 1);
    arrived.zero();
    Params params(in.get(), parts.get(), arrived.get(), out.get(), n);
    const auto status = gpu.launch(*module, "reduce", params.data(), {blocks}, {64});
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_EQ(out.read()[0], expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cinch::emulator
