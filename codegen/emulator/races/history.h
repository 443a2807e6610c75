// History: the values of a word of global memory in the order of their atomic writes, and which
// threads have seen which. A relaxed load may return any value that the thread does not know to be
// old.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/emulator/races/shadow.h"

namespace cinch::emulator {

inline constexpr std::uint32_t kWarpLanes = 32;

/// The accesses of other blocks' threads (or of lanes in a partial mask) that a thread
/// knows to have come before. Release and acquire pass it on; it is immutable and shared.
struct Knowledge {
  /// By warp of the grid: its lanes' accesses with a lower clock are known. Missing entries are 0.
  std::vector<std::uint32_t> warps;
  /// Threads of which more is known, ascending: (thread, clock).
  std::vector<std::pair<std::uint32_t, std::uint32_t>> threads;

  bool covers(std::uint32_t thread, std::uint32_t clock) const;
  void add_warp(std::uint32_t warp, std::uint32_t clock);
  void add_thread(std::uint32_t thread, std::uint32_t clock);
  void add(const Knowledge& other);
};

/// Null: nothing is known.
using KnowledgePtr = std::shared_ptr<const Knowledge>;
KnowledgePtr joined(const KnowledgePtr& a, const KnowledgePtr& b);

class History {
 public:
  /// The most values and loads that are kept. Older ones are forgotten: nobody sees them any more.
  static constexpr std::size_t kMostHeld = 8, kMostSeen = 64;

  struct Held {
    std::uint64_t value = 0;
    Access write;            // none: the value was there before
    std::uint64_t time = 0;  // number of the atomic in the launch
    KnowledgePtr release;    // what a load that returns this value acquires
  };

  /// For a word of `size` bytes that holds `now`, which everybody sees.
  History(std::uint32_t size, Held now) : size_(size), held_{std::move(now)} {}

  std::uint32_t size() const { return size_; }
  /// Is this the history of the last write there?
  bool is_of(std::uint32_t size, const Held& now) const {
    return size == size_ && now.write == held_.back().write && now.value == held_.back().value;
  }
  void add(Held now);

  /// How many of the newest values a thread may see, at least 1. `is_behind(access, time)`: does
  /// the thread know that the access at that time came before?
  template <typename IsBehind>
  std::uint64_t num_visible(const IsBehind& is_behind) const;
  /// The value of a load that chose the one `age` writes before the newest. A thread that knows of
  /// this load sees no older value.
  const Held& see(std::uint64_t age, const Access& load, std::uint64_t time);

 private:
  struct Seen {
    Access load;
    std::uint64_t time, number;
  };

  std::uint32_t size_;
  // Number of held_.front(): values are numbered in the order of writing
  std::uint64_t oldest_ = 0;
  std::vector<Held> held_;
  std::vector<Seen> seen_;  // loads: the last one for each clock of a thread
};

template <typename IsBehind>
std::uint64_t History::num_visible(const IsBehind& is_behind) const {
  std::uint64_t visible = 1;
  for (; visible < held_.size(); ++visible) {
    const Held& held = held_[held_.size() - visible];
    if (!held.write || is_behind(held.write, held.time)) break;
  }
  for (const Seen& seen : seen_) {
    const std::uint64_t age = oldest_ + held_.size() - 1 - seen.number;
    if (age + 1 < visible && is_behind(seen.load, seen.time)) visible = age + 1;
  }
  return visible;
}

}  // namespace cinch::emulator
