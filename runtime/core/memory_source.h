// Where a session's memory comes from: the C library or a GPU's driver, or functions of whoever
// runs the session.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace cinch::rt {

enum class MemoryUse : std::uint8_t { State, Workspace };

/// Both functions or neither; neither: the C library, or the driver of the session's GPU.
/// `allocate` gives at least `size_bytes` bytes at a multiple of `alignment` (a power of two), or
/// null; `release` takes what it gave. Memory of a GPU is an address there, and whoever holds some
/// of it holds the source too: it may go back after the session (freeing.h).
struct MemorySource {
  std::shared_ptr<void> context;
  void* (*allocate)(void* context, std::size_t size_bytes, std::size_t alignment,
                    MemoryUse use) = nullptr;
  void (*release)(void* context, void* memory, std::size_t size_bytes, MemoryUse use) = nullptr;
};

}  // namespace cinch::rt
