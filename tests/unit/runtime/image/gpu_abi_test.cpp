// The offsets with which the host writes a tensor's entry equal those of the struct that kernels
// read.
#include "runtime/image/gpu_abi.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace cinch::rt {
namespace {

using TensorEntry = GpuTensorOf<3, 2, 5, 4>;
using LeastEntry = GpuTensorOf<1, 1, 1, 1>;

TEST(GpuAbiTest, TheHostWritesWhereKernelsRead) {
  const GpuTensorLayout at = gpu_tensor_layout(3, 2, 4, 5);
  EXPECT_EQ(at.buffers, offsetof(TensorEntry, buffers));
  EXPECT_EQ(at.bytes, offsetof(TensorEntry, bytes));
  EXPECT_EQ(at.sizes, offsetof(TensorEntry, sizes));
  EXPECT_EQ(at.groups, offsetof(TensorEntry, groups));
  EXPECT_EQ(at.params, offsetof(TensorEntry, params));
  EXPECT_EQ(at.header, offsetof(TensorEntry, header));
  EXPECT_EQ(at.payload, offsetof(TensorEntry, payload));
  EXPECT_EQ(at.tensor, offsetof(TensorEntry, tensor));
  EXPECT_EQ(at.draw, offsetof(TensorEntry, draw));
  EXPECT_EQ(at.size_bytes, sizeof(TensorEntry));
}

TEST(GpuAbiTest, ListsHaveAtLeastOneEntry) {
  EXPECT_EQ(gpu_tensor_layout(0, 0, 0, 0).size_bytes, sizeof(LeastEntry));
}

}  // namespace
}  // namespace cinch::rt
