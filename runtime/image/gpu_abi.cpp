// Offsets in the tables that gpu_abi.h describes.
#include "runtime/image/gpu_abi.h"

#include <algorithm>

namespace cinch::rt {

GpuTensorLayout gpu_tensor_layout(std::size_t num_buffers, std::size_t num_sizes,
                                  std::size_t num_params, std::size_t num_kernels) {
  // C++ has no arrays of length 0.
  const auto at_least_one = [](std::size_t n) { return std::max<std::size_t>(n, 1); };
  GpuTensorLayout layout;
  layout.num_buffers = at_least_one(num_buffers);
  layout.num_sizes = at_least_one(num_sizes);
  layout.num_params = at_least_one(num_params);
  layout.num_kernels = at_least_one(num_kernels);
  layout.bytes = layout.buffers + 8 * layout.num_buffers;
  layout.sizes = layout.bytes + 8 * layout.num_buffers;
  layout.groups = layout.sizes + 8 * layout.num_sizes;
  layout.params = layout.groups + 8 * layout.num_kernels;
  layout.header = layout.params + 8 * layout.num_params;
  layout.payload = layout.header + std::size_t{8} * 5;
  layout.tensor = layout.payload + std::size_t{8} * 2;
  layout.draw = layout.tensor + 8;
  layout.size_bytes = layout.draw + std::size_t{4} * 8;
  return layout;
}

GpuTensorLayout gpu_tensor_layout(const ProgramImage& image) {
  return gpu_tensor_layout(image.buffers.size(), image.size_exprs.size(), image.info.params.size(),
                           image.kernels.size());
}

bool is_plain_service(GpuService service) {
  return service != GpuService::Seal && service != GpuService::Commit &&
         service != GpuService::Open;
}

}  // namespace cinch::rt
