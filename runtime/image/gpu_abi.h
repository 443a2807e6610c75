// How the host launches GPU images, besides the structs and numbers that it shares with kernels
// (kernel_abi.h). Every launch has one parameter and a table in device memory with one entry per
// tensor, so that a kernel never depends on the number of tensors.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/image/image.h"

namespace cinch::rt {

/// Shared memory of a block that every device grants without a special request.
inline constexpr std::uint32_t kMaxGpuSharedBytes = 48 * 1024;

/// The kernel that runs a list of steps, with one block for each tensor or as many as each step
/// has.
inline constexpr const char* kGpuStepsSymbol = "cinch_steps";

/// Byte offsets in the table's entry of one tensor: those of GpuTensorOf with the image's lengths.
struct GpuTensorLayout {
  std::size_t buffers = 0, bytes = 0, sizes = 0, groups = 0, params = 0, header = 0, payload = 0;
  std::size_t tensor = 0, draw = 0, size_bytes = 0;
  std::size_t num_buffers = 1, num_sizes = 1, num_params = 1, num_kernels = 1;  // at least 1 each
};
GpuTensorLayout gpu_tensor_layout(std::size_t num_buffers, std::size_t num_sizes,
                                  std::size_t num_params, std::size_t num_kernels);
GpuTensorLayout gpu_tensor_layout(const ProgramImage& image);

/// Services that do not depend on the program have a kernel of their own, kGpuServeSymbol, so that
/// large copies run at full memory speed. Its blocks have kGpuServiceThreads.
inline constexpr const char* kGpuServeSymbol = "cinch_serve";
inline constexpr std::uint32_t kGpuServiceThreads = 256;
bool is_plain_service(GpuService service);
/// The value of a step that divides or multiplies.
inline std::int64_t gpu_factor(float factor) {
  return std::bit_cast<std::uint32_t>(factor);
}

}  // namespace cinch::rt
