// One allocation per buffer. Large ones start at a huge page and ask for huge pages: first touch of
// 256 MiB then costs 128 faults instead of 65536.
#include "runtime/exec/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace cinch::rt {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{1} << 21;

}  // namespace

Status AlignedBuffer::resize(std::int64_t size_bytes) {
  if (data_ != nullptr && size_bytes == size_) return Ok{};
  release();
  if (size_bytes < 0) {
    return fail(ErrorKind::InvalidArgument, fmt::format("a buffer of {} bytes", size_bytes));
  }
  void* const memory = allocate(static_cast<std::size_t>(size_bytes));
  if (memory == nullptr) {
    return fail(ErrorKind::OutOfMemory, fmt::format("no memory for {} bytes", size_bytes));
  }
  data_ = static_cast<std::uint8_t*>(memory);
  size_ = size_bytes;
  return Ok{};
}

void* AlignedBuffer::allocate(std::size_t size_bytes) const {
  if (source_.allocate != nullptr) {
    // A source may return null for 0 bytes, which would mean that there is no memory.
    return source_.allocate(source_.context.get(), std::max(size_bytes, std::size_t{1}),
                            kBufferAlignment, use_);
  }
  const bool is_large = size_bytes >= 2 * kHugePageBytes;
  const std::size_t alignment = is_large ? kHugePageBytes : kBufferAlignment;
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, size_bytes) != 0) return nullptr;
  if (is_large) ::madvise(memory, size_bytes, MADV_HUGEPAGE);
  return memory;
}

void AlignedBuffer::release() {
  if (data_ != nullptr && source_.release != nullptr) {
    const auto size_bytes = static_cast<std::size_t>(std::max(size_, std::int64_t{1}));
    source_.release(source_.context.get(), data_, size_bytes, use_);
  } else {
    std::free(data_);
  }
  data_ = nullptr;
  size_ = 0;
}

std::vector<AlignedBuffer> make_buffers(std::size_t count, const MemorySource& memory,
                                        MemoryUse use) {
  std::vector<AlignedBuffer> buffers;
  buffers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) buffers.emplace_back(memory, use);
  return buffers;
}

}  // namespace cinch::rt
