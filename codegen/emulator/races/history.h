// History: what a word of global memory held one after another, as atomics wrote it, and who has
// seen what of it. A relaxed load may return any of it that the thread does not know to be old.
#pragma once
#include <cstdint>
#include <vector>

#include "codegen/emulator/races/knowledge.h"
#include "codegen/emulator/races/shadow.h"

namespace cinch::emulator {

class History {
 public:
  /// One more than that is forgotten, the oldest first: then nobody sees it any more.
  static constexpr std::size_t kMostHeld = 8, kMostSeen = 64;

  struct Held {
    std::uint64_t value = 0;
    Access write;            // none: it was there before
    std::uint64_t time = 0;  // counts atomics of the launch
    KnowledgePtr release;    // what a load that returns this value acquires
  };

  /// Of a word of `size` bytes that holds `now`, which everybody sees.
  History(std::uint32_t size, Held now) : size_(size), held_{std::move(now)} {}

  std::uint32_t size() const { return size_; }
  /// Is this the history of what was written last there?
  bool is_of(std::uint32_t size, const Held& now) const {
    return size == size_ && now.write == held_.back().write && now.value == held_.back().value;
  }
  void add(Held now);

  /// How many of the newest values a thread may see, at least 1. `is_behind(access, time)`: does it
  /// know that the access, done then, lies behind it?
  template <typename IsBehind>
  std::uint64_t num_visible(const IsBehind& is_behind) const;
  /// The value that a load returns which chose the one `age` writes before the newest; nobody who
  /// knows of this load sees an older one.
  const Held& see(std::uint64_t age, const Access& load, std::uint64_t time);

 private:
  struct Seen {
    Access load;
    std::uint64_t time, number;
  };

  std::uint32_t size_;
  std::uint64_t oldest_ = 0;  // number of held_.front(): values are numbered as they were written
  std::vector<Held> held_;
  std::vector<Seen> seen_;  // loads, the last for each clock of a thread
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
