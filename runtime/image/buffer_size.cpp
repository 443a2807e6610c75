// Bodies of buffer_size.h.
#include "runtime/image/buffer_size.h"

#include <fmt/format.h>

#include <algorithm>

namespace cinch::rt {

Result<std::int64_t> buffer_bytes(const ProgramImage& image, BufferIndex index,
                                  const HostEnv& env) {
  const BufferInfo& buffer = image.buffers[index];
  auto bytes = image.info.exprs.eval_int(buffer.size_bytes, env);
  if (!bytes) return bytes;
  const bool is_tensor = buffer.role == BufferRole::Gradient || buffer.role == BufferRole::Output;
  const auto f32_bytes = static_cast<std::int64_t>(sizeof(float)) * env.n;
  const std::int64_t most = is_tensor ? f32_bytes : kMaxBufferBytes;
  if (*bytes <= most) return std::max<std::int64_t>(*bytes, 0);
  return fail(ErrorKind::Overflow,
              fmt::format("buffer {}: a size of {} bytes, at most {} are possible", buffer.name,
                          *bytes, most));
}

Result<std::int64_t> kernel_groups(const ProgramImage& image, std::size_t kernel,
                                   const HostEnv& env) {
  auto groups = image.info.exprs.eval_int(image.kernels[kernel].num_groups, env);
  if (!groups) return groups;
  if (*groups <= kMaxGroups) return std::max<std::int64_t>(*groups, 0);
  return fail(ErrorKind::Overflow, fmt::format("kernel {}: {} groups, at most {} are possible",
                                               image.kernels[kernel].symbol, *groups, kMaxGroups));
}

}  // namespace cinch::rt
