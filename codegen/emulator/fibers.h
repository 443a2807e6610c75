// Stacks that switch, for the threads of resident blocks (Boost.Context), known to
// AddressSanitizer.
#pragma once
#include <cstddef>
#include <cstdint>

#include "codegen/emulator/hooks.h"

namespace cinch::emulator {

/// A place where execution can go on: a stack that sleeps.
struct Fiber {
  void* context = nullptr;
  void (*body)() = nullptr;  // what it runs first
  const void* stack_begin = nullptr;
  std::size_t stack_bytes = 0;
  void* sanitizer_stack = nullptr;  // AddressSanitizer's own, while this one sleeps
};

/// Stacks of one size, with pages between them that nobody may touch.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  /// At least as many stacks. What was on them is gone, and must have been abandoned. Throws
  /// std::bad_alloc.
  void resize(std::size_t num_stacks);
  /// A fiber that runs `body` on stack `index` when it is first switched to; `body` never returns.
  Fiber make(std::size_t index, void (*body)());
  /// The frames of all fibers made since the last time will never run again.
  void abandon();

 private:
  char* begin_of(std::size_t index) const;
  char* memory_ = nullptr;
  std::size_t num_stacks_ = 0;
  std::size_t used_stacks_ = 0;  // since abandon(): those below
};

/// From the running stack, kept in `from`, to another; comes back when some stack switches to
/// `from`.
void switch_fibers(Fiber& from, Fiber& to);
/// To be called first on a new fiber: `from` is where it was switched from.
void arrive_first(Fiber& from);

}  // namespace cinch::emulator
