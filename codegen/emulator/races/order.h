// AccessOrder: which accesses of a launch are known to come before which, and which values atomic
// loads may therefore return.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "codegen/emulator/arena.h"
#include "codegen/emulator/blocks.h"
#include "codegen/emulator/races/history.h"

namespace cinch::emulator {

class AccessOrder {
 public:
  /// `generation`: of the launch, in the shadow.
  AccessOrder(ResidentBlocks& blocks, const Arena& arena, Shadow& shadow, Random& random,
              std::uint64_t generation)
      : blocks_(blocks), arena_(arena), shadow_(shadow), random_(random), generation_(generation) {}

  /// Does the current thread know that the access came before?
  bool is_known(const Access& access) const;

  // ---- what orders threads ----
  void order_block(Slot& slot, Thread* threads);
  void order_warp(Thread& thread, std::uint32_t mask);
  void fence();
  /// The current thread read the newest value there. It knows more from its next fence on.
  void acquire(const void* at);
  /// The current thread wrote there. An update continues the release sequence of the value that it
  /// found.
  void release_to(const void* at, bool is_update);

  // ---- the values that atomic loads may return ----
  void count_atomic() { ++atomic_time_; }
  bool has_histories() const { return !histories_.empty(); }
  /// The history of a word of global memory as it is now. Null for other memory, and if there is
  /// none and none is to be made. Everybody sees a value that was not written by an atomic.
  History* history_of(const void* at, std::uint32_t size, bool makes);
  std::uint64_t load_held(History& history, std::uint32_t site);
  /// `at` was just written, and release_to called for it.
  void add_held(History& history, const void* at, std::uint32_t site);

 private:
  bool is_behind(const Access& access, std::uint64_t time) const;
  const KnowledgePtr& release_of(Thread& thread) const;
  KnowledgePtr release_at(const void* at) const;

  ResidentBlocks& blocks_;
  const Arena& arena_;
  Shadow& shadow_;
  Random& random_;
  std::uint64_t generation_;
  std::unordered_map<const void*, KnowledgePtr> releases_;        // by address of a strong write
  std::unordered_map<const void*, History> histories_;            // by address
  std::unordered_map<std::uint32_t, std::uint32_t> last_fences_;  // clocks, by block
  std::uint64_t atomic_time_ = 0;                                 // number of atomics so far
};

}  // namespace cinch::emulator
