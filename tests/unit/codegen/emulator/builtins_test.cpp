// CUDA's built-ins on the emulated GPU, against what their documentation says.
#include <bit>
#include <cmath>

#include "tests/unit/codegen/emulator/emulated.h"

namespace cinch::emulator {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// One warp runs a body that puts `values` words into out[32 * i + lane].
std::vector<u64> run_warp(const std::string& body, std::size_t values) {
  const std::string text =
      "using u32 = unsigned;\nusing u64 = unsigned long long;\n"
      "extern \"C\" __global__ void k(u64* out) {\n"
      "  const u32 lane = threadIdx.x;\n" +
      body + "\n}\n";
  const Module* module = compile(text, {"k"});
  if (!module) return std::vector<u64>(32 * values);
  Gpu gpu;
  const Array<u64> out(gpu, 32 * values);
  Params params(out.get());
  const auto status = gpu.launch(*module, "k", params.data(), {1}, {32});
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return out.read();
}

TEST(EmulatorBuiltins, Shuffles) {
  const auto out = run_warp(R"(
    out[lane] = __shfl_sync(0xffffffffu, lane * 10, 7);
    out[32 + lane] = __shfl_up_sync(0xffffffffu, lane * 10, 3);
    out[64 + lane] = __shfl_down_sync(0xffffffffu, lane * 10, 3);
    out[96 + lane] = __shfl_xor_sync(0xffffffffu, lane * 10, 5);
    out[128 + lane] = __shfl_sync(0xffffffffu, lane * 10, 3, 8);
    out[160 + lane] = __shfl_up_sync(0xffffffffu, lane * 10, 2, 8);
    out[192 + lane] = __shfl_down_sync(0xffffffffu, lane * 10, 2, 8);
    out[224 + lane] = __shfl_xor_sync(0xffffffffu, lane * 10, 9, 8);
    out[256 + lane] = __shfl_sync(0xffffffffu, (unsigned char)(lane + 250), 8);
    out[288 + lane] = __shfl_sync(0xffffffffu, (u64(lane) << 40) | 1u, 9);
    out[320 + lane] = u64(__shfl_sync(0xffffffffu, lane * 0.5, 5) * 8);
    out[352 + lane] = __shfl_sync(0xffffffffu, lane, 35);
  )",
                            12);
  for (u32 lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], 70u);
    EXPECT_EQ(out[32 + lane], lane < 3 ? lane * 10 : lane * 10 - 30);
    EXPECT_EQ(out[64 + lane], lane > 28 ? lane * 10 : lane * 10 + 30);
    EXPECT_EQ(out[96 + lane], (lane ^ 5) * 10);
    EXPECT_EQ(out[128 + lane], ((lane & ~7u) + 3) * 10);
    EXPECT_EQ(out[160 + lane], (lane % 8 < 2 ? lane : lane - 2) * 10);
    EXPECT_EQ(out[192 + lane], (lane % 8 > 5 ? lane : lane + 2) * 10);
    // Lanes of parts in front may be read, those of parts behind not.
    EXPECT_EQ(out[224 + lane], ((lane ^ 9) < (lane & ~7u) + 8 ? lane ^ 9 : lane) * 10);
    EXPECT_EQ(out[256 + lane], 2u);
    EXPECT_EQ(out[288 + lane], (u64{9} << 40) | 1);
    EXPECT_EQ(out[320 + lane], 20u);
    EXPECT_EQ(out[352 + lane], 3u);
  }
}

TEST(EmulatorBuiltins, VotesAndMatches) {
  const auto out = run_warp(R"(
    int all;
    out[lane] = __ballot_sync(0xffffffffu, lane % 3 == 0);
    out[32 + lane] = __any_sync(0xffffffffu, lane == 31) + 2 * __any_sync(0xffffffffu, 0);
    out[64 + lane] = __all_sync(0xffffffffu, lane < 32) + 2 * __all_sync(0xffffffffu, lane < 31);
    out[96 + lane] = __match_any_sync(0xffffffffu, u64(lane % 5) << 33);
    out[128 + lane] = __match_all_sync(0xffffffffu, 7, &all) + u64(all);
    out[160 + lane] = __match_all_sync(0xffffffffu, lane, &all) + u64(all);
    out[192 + lane] = lane < 8 ? __ballot_sync(0xffu, lane & 1) : __ballot_sync(~0xffu, 1);
    out[224 + lane] = (__activemask() >> lane) & 1u;
  )",
                            8);
  u32 thirds = 0;
  for (u32 lane = 0; lane < 32; lane += 3) thirds |= 1u << lane;
  for (u32 lane = 0; lane < 32; ++lane) {
    u32 same = 0;
    for (u32 other = lane % 5; other < 32; other += 5) same |= 1u << other;
    EXPECT_EQ(out[lane], thirds);
    EXPECT_EQ(out[32 + lane], 1u);
    EXPECT_EQ(out[64 + lane], 1u);
    EXPECT_EQ(out[96 + lane], same);
    EXPECT_EQ(out[128 + lane], 0x100000000u);
    EXPECT_EQ(out[160 + lane], 0u);
    EXPECT_EQ(out[192 + lane], lane < 8 ? 0xaau : 0xffffff00u);
    EXPECT_EQ(out[224 + lane], 1u);
  }
}

TEST(EmulatorBuiltins, BarriersThatCount) {
  const Module* module = compile(R"(
extern "C" __global__ void k(int* out) {
  const int t = threadIdx.x;
  out[3 * t] = __syncthreads_count(t % 3 == 0);
  out[3 * t + 1] = __syncthreads_and(t < 95) + 2 * __syncthreads_and(t < 96);
  out[3 * t + 2] = __syncthreads_or(t == 95) + 2 * __syncthreads_or(t == 96);
})",
                                 {"k"});
  ASSERT_TRUE(module);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Gpu gpu({.schedule_seed = seed});
    const Array<int> out(gpu, 3 * std::size_t{96});
    Params params(out.get());
    ASSERT_TRUE(gpu.launch(*module, "k", params.data(), {1}, {96}));
    const std::vector<int> found = out.read();
    for (std::size_t t = 0; t < 96; ++t) {
      EXPECT_EQ(found[3 * t], 32);
      EXPECT_EQ(found[3 * t + 1], 2);
      EXPECT_EQ(found[3 * t + 2], 1);
    }
  }
}

TEST(EmulatorBuiltins, Integers) {
  const auto out = run_warp(R"(
    const u32 x = 0x80f01234u >> lane;
    const u64 y = 0x8123456789abcdefull >> (2 * lane);
    u64* to = out + lane;
    to[0] = __popc(x);  to += 32;
    to[0] = __popcll(y);  to += 32;
    to[0] = u64(__ffs(int(x & ~3u)));  to += 32;
    to[0] = u64(__ffsll((long long)(y & ~7ull)));  to += 32;
    to[0] = u64(__clz(int(x)) + __clz(0));  to += 32;
    to[0] = u64(__clzll((long long)y) + __clzll(0));  to += 32;
    to[0] = __brev(x);  to += 32;
    to[0] = __brevll(y);  to += 32;
    to[0] = __umulhi(x, 0xdeadbeefu);  to += 32;
    to[0] = __umul64hi(y, 0xdeadbeefcafef00dull);  to += 32;
    to[0] = __byte_perm(0x44332291u, 0xf8776655u, 0x7410u + (lane & 7u));  to += 32;
    to[0] = __byte_perm(0x44332291u, 0xf8776655u, 0x1f80u);  to += 32;
    to[0] = __funnelshift_l(x, 0x13579bdfu, lane);  to += 32;
    to[0] = __funnelshift_r(x, 0x13579bdfu, lane + 32);
  )",
                            14);
  for (u32 lane = 0; lane < 32; ++lane) {
    const u32 x = 0x80f01234u >> lane;
    const u64 y = 0x8123456789abcdefull >> (2 * lane);
    const auto at = [&](std::size_t i) { return out[32 * i + lane]; };
    const auto first_bit = [](u64 word) { return word == 0 ? 0 : std::countr_zero(word) + 1; };
    u32 reversed = 0;
    u64 reversed_y = 0;
    for (u32 i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
    for (u32 i = 0; i < 64; ++i) reversed_y |= (y >> i & 1) << (63 - i);
    EXPECT_EQ(at(0), static_cast<u64>(std::popcount(x)));
    EXPECT_EQ(at(1), static_cast<u64>(std::popcount(y)));
    EXPECT_EQ(at(2), static_cast<u64>(first_bit(x & ~3u)));
    EXPECT_EQ(at(3), static_cast<u64>(first_bit(y & ~u64{7})));
    EXPECT_EQ(at(4), static_cast<u64>(std::countl_zero(x) + 32));
    EXPECT_EQ(at(5), static_cast<u64>(std::countl_zero(y) + 64));
    EXPECT_EQ(at(6), reversed);
    EXPECT_EQ(at(7), reversed_y);
    EXPECT_EQ(at(8), (u64{x} * 0xdeadbeefu) >> 32);
    const auto wide = static_cast<unsigned __int128>(y) * 0xdeadbeefcafef00du;
    EXPECT_EQ(at(9), static_cast<u64>(wide >> 64));
    const u32 bytes[] = {0x91, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0xf8};
    EXPECT_EQ(at(10), bytes[lane & 7] | 0x22u << 8 | 0x55u << 16 | 0xf8u << 24);
    EXPECT_EQ(at(11), 0x22ffff91u);
    EXPECT_EQ(at(12), static_cast<u32>(((u64{0x13579bdfu} << 32 | x) << lane) >> 32));
    EXPECT_EQ(at(13), static_cast<u32>((u64{0x13579bdfu} << 32 | x) >> lane));
  }
}

TEST(EmulatorBuiltins, FloatsRoundOnce) {
  const auto out = run_warp(R"(
    const float a = 1.0f + lane * 0x1p-23f, b = 1.0f - lane * 0x1p-24f;
    const double c = 1.0 + lane * 0x1p-52, d = 1.0 - lane * 0x1p-53;
    out[lane] = __float_as_uint(__fmaf_rn(a, b, -1.0f));
    out[32 + lane] = u64(__double_as_longlong(__fma_rn(c, d, -1.0)));
    out[64 + lane] = __float_as_uint(a * b - 1.0f);
    out[96 + lane] = __float_as_uint(__fsqrt_rn(a + lane));
    out[128 + lane] = u64(__double_as_longlong(__dsqrt_rn(c + lane)));
    out[160 + lane] = __float_as_uint(rintf(a * 2.5f * lane)) ^ __float_as_uint(floorf(-0.3f * lane));
    out[192 + lane] = __float_as_uint(ceilf(-0.3f * lane)) ^ __float_as_uint(truncf(-0.7f * lane));
    out[224 + lane] = u64(__double_as_longlong(rint(0.5 * lane)));
  )",
                            8);
  for (u32 lane = 0; lane < 32; ++lane) {
    const auto l = static_cast<float>(lane);
    const float a = 1.0f + l * 0x1p-23f, b = 1.0f - l * 0x1p-24f;
    const double c = 1.0 + lane * 0x1p-52, d = 1.0 - lane * 0x1p-53;
    const auto bits = [](float x) { return u64{std::bit_cast<u32>(x)}; };
    EXPECT_EQ(out[lane], bits(std::fma(a, b, -1.0f)));
    EXPECT_EQ(out[32 + lane], std::bit_cast<u64>(std::fma(c, d, -1.0)));
    EXPECT_EQ(out[64 + lane], bits(a * b - 1.0f));
    EXPECT_EQ(out[96 + lane], bits(std::sqrt(a + l)));
    EXPECT_EQ(out[128 + lane], std::bit_cast<u64>(std::sqrt(c + lane)));
    EXPECT_EQ(out[160 + lane], bits(std::rint(a * 2.5f * l)) ^ bits(std::floor(-0.3f * l)));
    EXPECT_EQ(out[192 + lane], bits(std::ceil(-0.3f * l)) ^ bits(std::trunc(-0.7f * l)));
    EXPECT_EQ(out[224 + lane], std::bit_cast<u64>(std::rint(0.5 * lane)));
  }
}

// Each lane updates the same place; what the lanes saw are the steps from the first value to the
// last.
TEST(EmulatorBuiltins, Atomics) {
  const auto out = run_warp(R"(
    __shared__ u32 words[10];
    __shared__ int numbers[3];
    __shared__ u64 longs[4];
    __shared__ float sum;
    if (lane < 10) words[lane] = lane == 1 || lane == 4 ? 0xffffffffu : 0;
    if (lane < 3) numbers[lane] = 0;
    if (lane < 4) longs[lane] = lane == 3 ? ~0ull : 0;
    if (lane == 0) sum = 0;
    __syncwarp();
    const u32 seen = atomicAdd(&words[0], 1u);
    atomicAnd(&words[1], ~(1u << lane));
    atomicOr(&words[2], 1u << lane);
    atomicXor(&words[3], lane);
    atomicMin(&words[4], lane + 5);
    atomicMax(&words[5], lane + 5);
    atomicExch(&words[6], 77u);
    for (u32 old = 0, now; (now = atomicCAS(&words[7], old, old + 2)) != old; old = now) {
    }
    atomicSub(&words[8], 1u);
    atomicMin(&numbers[0], int(lane) - 20);
    atomicMax(&numbers[1], int(lane) - 20);
    atomicAdd(&numbers[2], -int(lane));
    atomicAdd(&longs[0], 1ull << 33);
    atomicMax(&longs[1], u64(lane) << 33);
    atomicOr(&longs[2], 1ull << (lane + 20));
    atomicMin(&longs[3], u64(lane + 3) << 33);
    atomicAdd(&sum, 0.25f);
    __nv_atomic_fetch_add(&words[9], 3u, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK);
    __syncwarp();
    out[lane] = seen;
    out[32 + lane] = lane < 10 ? words[lane] : lane < 13 ? u64(u32(numbers[lane - 10]))
                   : lane < 17 ? longs[lane - 13] : u64(sum * 4);
  )",
                            2);
  u64 seen = 0;
  for (u32 lane = 0; lane < 32; ++lane) seen |= u64{1} << out[lane];
  EXPECT_EQ(seen, 0xffffffffu);
  const auto at = [&](std::size_t i) { return out[32 + i]; };
  EXPECT_EQ(at(0), 32u);
  EXPECT_EQ(at(1), 0u);
  EXPECT_EQ(at(2), 0xffffffffu);
  EXPECT_EQ(at(3), 0u);
  EXPECT_EQ(at(4), 5u);
  EXPECT_EQ(at(5), 36u);
  EXPECT_EQ(at(6), 77u);
  EXPECT_EQ(at(7), 64u);
  EXPECT_EQ(at(8), 0xffffffe0u);
  EXPECT_EQ(at(9), 96u);
  EXPECT_EQ(at(10), static_cast<u32>(-20));
  EXPECT_EQ(at(11), 11u);
  EXPECT_EQ(at(12), static_cast<u32>(-496));
  EXPECT_EQ(at(13), u64{32} << 33);
  EXPECT_EQ(at(14), u64{31} << 33);
  EXPECT_EQ(at(15), u64{0xffffffff} << 20);
  EXPECT_EQ(at(16), u64{3} << 33);
  EXPECT_EQ(at(17), 32u);
}

TEST(EmulatorBuiltins, LoadsAndStoresByCache) {
  const auto out = run_warp(R"(
    __stcs(out + lane, u64(lane) * 3);
    __stwt(out + 32 + lane, __ldcs(out + lane) + __ldg(out + lane));
  )",
                            2);
  for (u32 lane = 0; lane < 32; ++lane) EXPECT_EQ(out[32 + lane], 6 * lane);
}

}  // namespace
}  // namespace cinch::emulator
