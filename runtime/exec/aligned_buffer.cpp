// One allocation per buffer. Large ones start at a huge page and ask for huge pages: first touch of
// 256 MiB then costs 128 faults instead of 65536.
#include "runtime/exec/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>

namespace cinch::rt {
namespace {

constexpr std::int64_t kHugePageBytes = std::int64_t{1} << 21;

}  // namespace

Status AlignedBuffer::resize(std::int64_t size_bytes) {
  if (data_ != nullptr && size_bytes == size_) return Ok{};
  release();
  if (size_bytes < 0) {
    return fail(ErrorKind::InvalidArgument, fmt::format("a buffer of {} bytes", size_bytes));
  }
  const bool is_large = size_bytes >= 2 * kHugePageBytes;
  const std::size_t alignment = is_large ? kHugePageBytes : kBufferAlignment;
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, static_cast<std::size_t>(size_bytes)) != 0) {
    return fail(ErrorKind::OutOfMemory, fmt::format("no memory for {} bytes", size_bytes));
  }
  if (is_large) ::madvise(memory, static_cast<std::size_t>(size_bytes), MADV_HUGEPAGE);
  data_ = static_cast<std::uint8_t*>(memory);
  size_ = size_bytes;
  return Ok{};
}

void AlignedBuffer::release() {
  std::free(data_);
  data_ = nullptr;
  size_ = 0;
}

}  // namespace cinch::rt
