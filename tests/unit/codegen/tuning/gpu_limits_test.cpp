// How many blocks fit, against what NVIDIA's occupancy calculator says.
#include "codegen/tuning/gpu_limits.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cinch::codegen {
namespace {

Occupancy on(const char* arch, const KernelNeeds& needs) {
  return occupancy(*gpu_limits(arch), needs);
}

TEST(GpuLimits, are_of_the_architecture_or_the_next_lower_one) {
  EXPECT_EQ(gpu_limits("sm_90")->warps, 64u);
  EXPECT_EQ(gpu_limits("sm_90a")->shared_bytes, 228u * 1024);
  EXPECT_EQ(gpu_limits("sm_103")->warps, gpu_limits("sm_100")->warps);
  EXPECT_EQ(gpu_limits("sm_75")->blocks, 16u);
  EXPECT_FALSE(gpu_limits("sm_70"));
  EXPECT_FALSE(gpu_limits("x86-64"));
  EXPECT_FALSE(gpu_limits("sm_"));
}

TEST(GpuLimits, known_architectures_ascend) {
  const auto known = known_gpu_archs();
  EXPECT_EQ(known.front(), 75);
  EXPECT_TRUE(std::ranges::is_sorted(known));
  EXPECT_TRUE(std::ranges::binary_search(known, 90));
  EXPECT_FALSE(std::ranges::binary_search(known, 99));
}

TEST(GpuLimits, bound_blocks_by_warps_registers_and_shared_memory) {
  EXPECT_EQ(on("sm_90", {256, 32, 1024}).blocks, 8u);
  EXPECT_EQ(on("sm_90", {256, 32, 1024}).share, 1.0);
  // 78 registers are given as 80: 25 warps, three blocks of 8.
  EXPECT_EQ(on("sm_90", {256, 78, 1024}).blocks, 3u);
  EXPECT_EQ(on("sm_90", {256, 78, 1024}).share, 24.0 / 64);
  EXPECT_EQ(on("sm_90", {256, 32, 49152}).blocks, 4u);
  // Small blocks: their number is bounded, too.
  EXPECT_EQ(on("sm_90", {32, 16, 0}).blocks, 32u);
  EXPECT_EQ(on("sm_90", {32, 16, 0}).share, 0.5);
  EXPECT_EQ(on("sm_75", {1024, 64, 0}).blocks, 1u);
  EXPECT_EQ(on("sm_86", {1024, 32, 0}).blocks, 1u);
}

TEST(GpuLimits, of_a_kernel_that_does_not_fit_there_is_no_block) {
  EXPECT_EQ(on("sm_90", {1024, 255, 0}).blocks, 0u);
  EXPECT_EQ(on("sm_75", {256, 32, 100 * 1024}).blocks, 0u);
}

}  // namespace
}  // namespace cinch::codegen
