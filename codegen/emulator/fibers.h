// Switchable stacks for the threads of resident blocks (Boost.Context), known to AddressSanitizer.
#pragma once
#include <cstddef>
#include <cstdint>

#include "codegen/emulator/hooks.h"

namespace cinch::emulator {

/// A suspended stack, where execution can go on.
struct Fiber {
  void* context = nullptr;
  void (*body)() = nullptr;  // what it runs first
  const void* stack_begin = nullptr;
  std::size_t stack_bytes = 0;
  void* sanitizer_stack = nullptr;  // AddressSanitizer's own, while this fiber is suspended
};

/// Stacks of one size, with inaccessible pages between them.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// Makes at least `num_stacks` stacks. Their old contents are lost; abandon their fibers before.
  /// Throws std::bad_alloc.
  void resize(std::size_t num_stacks);
  /// Makes a fiber that runs `body` on stack `index` at the first switch; `body` never returns.
  Fiber make(std::size_t index, void (*body)());
  /// Forgets all fibers made since the last call; their frames never run again.
  void abandon();

 private:
  char* begin_of(std::size_t index) const;
  char* memory_ = nullptr;
  std::size_t num_stacks_ = 0;
  std::size_t used_stacks_ = 0;  // since abandon(): stacks below this are used
};

/// Switches from the running stack, saved in `from`, to another. Returns when some stack switches
/// to `from`.
void switch_fibers(Fiber& from, Fiber& to);
/// Call this first on a new fiber; `from` is the fiber that switched to it.
void arrive_first(Fiber& from);

}  // namespace cinch::emulator
