// Resources read from cubins of NVRTC, and from invalid bytes.
#include "codegen/jit/nvrtc.h"

#include <gtest/gtest.h>

#include <random>

namespace cinch::codegen {
namespace {

constexpr const char* kText = R"(
extern "C" __global__ void plain(float* x) { x[threadIdx.x] = 1.0f; }
extern "C" __global__ void shares(float* x) {
  __shared__ float held[1000];
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[255 - threadIdx.x];
}
extern "C" __global__ void stacks(float* x, const int* at) {
  float own[64];
  for (int i = 0; i < 64; ++i) own[i] = x[i * at[0]];
  for (int i = 0; i < 64; ++i) x[i] = own[at[i] & 63];
}
)";

class CubinTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_report().is_found) GTEST_SKIP() << "no NVRTC";
    auto binary = compile_cuda(kText, "sm_90");
    ASSERT_TRUE(binary) << binary.error().message;
    cubin = std::move(binary->bytes);
  }
  std::vector<std::uint8_t> cubin;
};

TEST_F(CubinTest, tells_what_each_kernel_takes) {
  const auto all = cubin_resources(cubin);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3u);
  for (const KernelResources& kernel : *all) {
    EXPECT_GT(kernel.registers, 3u) << kernel.symbol;
    EXPECT_LT(kernel.registers, 256u) << kernel.symbol;
    const bool shares = kernel.symbol == "shares", stacks = kernel.symbol == "stacks";
    EXPECT_EQ(kernel.shared_bytes >= 4000, shares) << kernel.symbol;
    EXPECT_EQ(kernel.stack_bytes >= 256, stacks) << kernel.symbol;
  }
}

TEST_F(CubinTest, refuses_what_is_cut_short_or_no_cubin) {
  EXPECT_FALSE(cubin_resources({}));
  EXPECT_FALSE(cubin_resources(std::vector<std::uint8_t>(200, 7)));
  // The table of sections is the file's last part but for program headers.
  for (const std::size_t size : {std::size_t{64}, cubin.size() / 2}) {
    EXPECT_FALSE(cubin_resources(std::span(cubin).first(size))) << size;
  }
}

// Any bytes give a result or an error.
TEST_F(CubinTest, changed_bytes_do_no_harm) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint8_t> changed = cubin;
    for (int k = 0; k < 8; ++k) {
      changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
    }
    (void)cubin_resources(changed);
  }
}

}  // namespace
}  // namespace cinch::codegen
