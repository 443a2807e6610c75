// Where a session's memory comes from: the C library, or functions of whoever runs the session.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cinch::rt {

enum class MemoryUse : std::uint8_t { State, Workspace };

/// Both functions or neither; neither: the C library. `allocate` gives at least `size_bytes` bytes
/// at a multiple of `alignment` (a power of two), or null; `release` takes what it gave.
struct MemorySource {
  void* context = nullptr;
  void* (*allocate)(void* context, std::size_t size_bytes, std::size_t alignment,
                    MemoryUse use) = nullptr;
  void (*release)(void* context, void* memory, std::size_t size_bytes, MemoryUse use) = nullptr;
};

}  // namespace cinch::rt
