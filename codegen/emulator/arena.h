// The memory of one emulated device: one range of addresses for allocations, with red zones, and
// for shared memory of resident blocks, with a byte of state for each byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime/core/error.h"

namespace cinch::emulator {

/// Bits of the state of a byte.
inline constexpr std::uint8_t kAllocated = 1, kWritten = 2, kFreed = 4;

struct Allocation {
  std::uint64_t offset = 0, size_bytes = 0;
  bool is_freed = false;
};

class Arena {
 public:
  /// `memory_bytes` is the limit for all allocations together.
  explicit Arena(std::size_t memory_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Aligned to 256 bytes. Errors: OutOfMemory.
  rt::Result<void*> allocate(std::size_t size_bytes);
  /// Errors: InvalidArgument (no allocation begins there, or it was freed).
  rt::Status free(void* memory);
  std::size_t allocated_bytes() const { return allocated_bytes_; }

  /// Does [p, p + size) lie in one allocation? For size 0: is p in it, or its end?
  bool contains(const void* p, std::size_t size_bytes) const;
  /// The allocation, freed or not, that contains an offset or is the last to end before it.
  std::optional<Allocation> nearest(std::uint64_t offset) const;
  /// The first allocation that begins after an offset.
  std::optional<Allocation> next(std::uint64_t offset) const;

  /// The whole range: allocations up to shared_begin(), then shared memory.
  char* base() const { return memory_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint64_t shared_begin() const { return shared_begin_; }
  std::uint64_t shared_bytes() const { return size_bytes_ - shared_begin_; }
  std::uint64_t offset_of(const void* p) const {
    return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(memory_);
  }
  std::uint8_t* state() const { return state_; }

 private:
  std::optional<std::uint64_t> find_place(std::uint64_t size_bytes);
  void forget_freed(std::uint64_t begin, std::uint64_t end);

  std::size_t memory_bytes_;
  std::size_t allocated_bytes_ = 0;
  std::uint64_t shared_begin_ = 0, size_bytes_ = 0;
  char* memory_ = nullptr;
  std::uint8_t* state_ = nullptr;
  std::uint64_t next_ = 0;  // where the search for room for the next allocation begins
  std::map<std::uint64_t, Allocation> allocations_;
};

}  // namespace cinch::emulator
