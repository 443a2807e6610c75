// Memory of exactly the requested bytes, 64-byte aligned. Each buffer is one allocation, so that an
// address sanitizer sees every access outside.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/memory_source.h"

namespace cinch::rt {

inline constexpr std::size_t kBufferAlignment = 64;

class AlignedBuffer {
 public:
  explicit AlignedBuffer(MemorySource source = {}, MemoryUse use = MemoryUse::Workspace)
      : source_(std::move(source)), use_(use) {}
  ~AlignedBuffer() { release(); }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : source_(std::exchange(other.source_, {})),
        use_(other.use_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(use_, other.use_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  /// Makes the buffer exactly size_bytes large. If it already is, keeps memory and bytes; otherwise
  /// the bytes are undefined. Errors: InvalidArgument (negative), OutOfMemory; the buffer is then
  /// empty.
  Status resize(std::int64_t size_bytes);

  std::uint8_t* data() { return data_; }
  const std::uint8_t* data() const { return data_; }
  std::int64_t size_bytes() const { return size_; }
  std::span<std::uint8_t> bytes() { return {data_, static_cast<std::size_t>(size_)}; }
  std::span<const std::uint8_t> bytes() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  void release();
  void* allocate(std::size_t size_bytes) const;

  MemorySource source_;
  MemoryUse use_ = MemoryUse::Workspace;
  std::uint8_t* data_ = nullptr;
  std::int64_t size_ = 0;
};

/// `count` empty buffers.
std::vector<AlignedBuffer> make_buffers(std::size_t count, const MemorySource& memory,
                                        MemoryUse use);

}  // namespace cinch::rt
