#include "codegen/emulator/fibers.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <new>

#include "runtime/core/sanitizer.h"
#ifdef CINCH_HAS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cinch::emulator {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t kGuardBytes = 4096;
// Stacks begin at different offsets within their pages: otherwise all would use the same few lines
// of the processor's caches.
constexpr std::size_t kColours = 128, kColourBytes = 192;
constexpr std::size_t kStrideBytes = kStackBytes + kGuardBytes;

// The fiber that switched last.
Fiber* g_from = nullptr;

void enter(context::transfer_t transfer) {
  g_from->context = transfer.fctx;
  static_cast<const Fiber*>(transfer.data)->body();
}

}  // namespace

StackPool::~StackPool() {
  if (memory_) ::munmap(memory_, kStrideBytes * num_stacks_);
}

char* StackPool::begin_of(std::size_t index) const {
  return memory_ + index * kStrideBytes + kGuardBytes;
}

void StackPool::resize(std::size_t num_stacks) {
  if (num_stacks <= num_stacks_) return;
  void* memory = ::mmap(nullptr, kStrideBytes * num_stacks, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (memory_) ::munmap(memory_, kStrideBytes * num_stacks_);
  memory_ = static_cast<char*>(memory);
  num_stacks_ = num_stacks;
  for (std::size_t i = 0; i < num_stacks_; ++i) {
    (void)::mprotect(begin_of(i) - kGuardBytes, kGuardBytes, PROT_NONE);
  }
}

void StackPool::abandon() {
#ifdef CINCH_HAS_ADDRESS_SANITIZER
  for (std::size_t i = 0; i < used_stacks_; ++i) {
    __asan_unpoison_memory_region(begin_of(i), kStackBytes);
  }
#endif
  used_stacks_ = 0;
}

Fiber StackPool::make(std::size_t index, void (*body)()) {
  Fiber fiber;
  fiber.stack_begin = begin_of(index);
  fiber.stack_bytes = kStackBytes;
  const std::size_t usable = kStackBytes - index % kColours * kColourBytes;
  fiber.context = context::make_fcontext(begin_of(index) + usable, usable, enter);
  fiber.body = body;
  used_stacks_ = std::max(used_stacks_, index + 1);
  return fiber;
}

void switch_fibers(Fiber& from, Fiber& to) {
#ifdef CINCH_HAS_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(&from.sanitizer_stack, to.stack_begin, to.stack_bytes);
#endif
  g_from = &from;
  const context::transfer_t transfer = context::jump_fcontext(to.context, &to);
  g_from->context = transfer.fctx;
#ifdef CINCH_HAS_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(from.sanitizer_stack, nullptr, nullptr);
#endif
}

void arrive_first([[maybe_unused]] Fiber& from) {
#ifdef CINCH_HAS_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &from.stack_begin, &from.stack_bytes);
#endif
}

}  // namespace cinch::emulator
