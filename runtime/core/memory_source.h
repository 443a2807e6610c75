// The source of a session's memory: the C library, a GPU's driver, or functions of the host
// program.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace cinch::rt {

enum class MemoryUse : std::uint8_t { State, Workspace };

/// Set both functions or neither. Neither: the C library, or the driver of the session's GPU.
/// `allocate` returns at least `size_bytes` bytes at a multiple of `alignment` (a power of two), or
/// null; `release` takes them back. Memory of a GPU is an address there. Whoever holds some of it
/// also holds the source, since it may go back after the session ends (device.h).
struct MemorySource {
  std::shared_ptr<void> context;
  void* (*allocate)(void* context, std::size_t size_bytes, std::size_t alignment,
                    MemoryUse use) = nullptr;
  void (*release)(void* context, void* memory, std::size_t size_bytes, MemoryUse use) = nullptr;
};

}  // namespace cinch::rt
