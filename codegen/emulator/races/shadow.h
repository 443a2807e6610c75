// The last accesses to each piece of memory, for finding races: up to two readers and a writer; and
// the values of words of global memory in the order of their atomic writes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cinch::emulator {
/// One access: its thread, the thread's clock, and its place in the text. A word, 0 for none.
class Access {
 public:
  static constexpr unsigned kThreadBits = 22, kClockBits = 24, kSiteBits = 17;

  Access() = default;
  /// The clock is at least 1. A site number that is too large counts as unknown.
  Access(std::uint32_t thread, std::uint32_t clock, std::uint32_t site, bool is_strong)
      : bits_(std::uint64_t{thread} << (kClockBits + kSiteBits + 1) |
              std::uint64_t{clock} << (kSiteBits + 1) |
              std::uint64_t{site >> kSiteBits ? 0 : site} << 1 | std::uint64_t{is_strong}) {}

  explicit operator bool() const { return bits_ != 0; }
  friend bool operator==(const Access&, const Access&) = default;
  bool is_strong() const { return (bits_ & 1) != 0; }
  std::uint32_t site() const {
    return static_cast<std::uint32_t>(bits_ >> 1) & ((1u << kSiteBits) - 1);
  }
  std::uint32_t clock() const {
    return static_cast<std::uint32_t>(bits_ >> (kSiteBits + 1)) & ((1u << kClockBits) - 1);
  }
  std::uint32_t thread() const {
    return static_cast<std::uint32_t>(bits_ >> (kClockBits + kSiteBits + 1));
  }

 private:
  std::uint64_t bits_ = 0;
};

struct Cell {
  Access write;
  // The last reader, and an earlier one of another warp or unordered with it.
  Access read[2];
};

class Shadow {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;

  /// For offsets below `size_bytes`.
  explicit Shadow(std::uint64_t size_bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  struct Page {
    std::uint64_t generation = 0;
    unsigned shift = 2;  // a cell is for 1 << shift bytes
    std::vector<Cell> cells;
  };
  /// The page of an offset, with cells fine enough for an access of `size` bytes there. Forgets
  /// entries of another generation.
  Page& page(std::uint64_t offset, std::uint64_t size, std::uint64_t generation) {
    Page* found = pages_[offset / kPageBytes];
    const std::uint64_t ends = offset | (offset + size);
    if (found && found->generation == generation && (ends & ((1u << found->shift) - 1)) == 0) {
      return *found;
    }
    return prepare(offset / kPageBytes, ends, generation);
  }

 private:
  Page& prepare(std::uint64_t index, std::uint64_t ends, std::uint64_t generation);

  std::uint64_t num_pages_;
  Page** pages_;  // by offset; null before the first access
  std::vector<std::unique_ptr<Page>> owned_;
};

// History: the values of a word of global memory in the order of their atomic writes, and which
// threads have seen which. A relaxed load may return any value that the thread does not know to be
// old.

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
