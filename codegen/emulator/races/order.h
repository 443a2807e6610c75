// AccessOrder: which accesses of a launch are known to come before which, and which values atomic
// loads may therefore return.
#pragma once

#include <set>
#include <unordered_map>

#include "codegen/emulator/arena.h"
#include "codegen/emulator/blocks.h"
#include "codegen/emulator/gpu.h"

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

// Reporter: collects the findings of one launch, and writes them as texts for people.

class Reporter {
 public:
  Reporter(const LaunchRequest& request, const Arena& arena, const ResidentBlocks& blocks)
      : request_(request), arena_(arena), blocks_(blocks) {}

  std::vector<Finding>& findings() { return findings_; }
  std::string all_findings() const;
  /// Has the line no finding of this kind yet?
  bool is_new(FindingKind kind, std::uint32_t site) const;
  void add(FindingKind kind, std::uint32_t site, const std::string& what);
  /// The current thread's access lies in no allocation.
  void add_outside(const void* at, std::uint64_t size, std::uint32_t site, bool is_write);
  void add_race(const Access& before, const Access& now, std::uint64_t offset,
                const char* before_did, const char* now_does);
  /// Nobody can go on, or all others can only poll for writes.
  void add_stuck();

  // ---- names in texts ----
  std::string thread_text(std::uint32_t id) const;
  std::string place_text(std::uint64_t offset, std::uint64_t size) const;
  std::string line_text(std::uint32_t site) const;

 private:
  std::string shared_text(std::uint64_t offset) const;
  int line_of(std::uint32_t site) const;

  const LaunchRequest& request_;
  const Arena& arena_;
  const ResidentBlocks& blocks_;
  std::vector<Finding> findings_;
  std::set<std::pair<FindingKind, int>> reported_;
};

}  // namespace cinch::emulator
