// The blocks of a launch that are on the device, with their warps, their threads, and the
// switchable stacks of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/emulator/module.h"

namespace cinch::emulator {
// The last accesses to each piece of memory, for finding races: up to two readers and a writer; and
// the values of words of global memory in the order of their atomic writes.

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

// Switchable stacks for the threads of resident blocks (Boost.Context), known to AddressSanitizer.

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

/// Coordinates of a thread in a block, or of a block in a grid; x runs fastest.
Dim index_in(std::uint64_t linear, const Dim& size);

/// The arguments of a launch.
struct LaunchRequest {
  const Module* module = nullptr;
  const KernelEntry* kernel = nullptr;
  void** params = nullptr;
  Dim grid, block;
  std::size_t shared_bytes = 0;
  std::uint64_t seed = 0;
  bool checks = true;
  unsigned max_resident_blocks = 8;
  std::uint64_t max_loop_steps = 0;
};

enum class Wait : std::uint8_t { None, Warp, Block, Done };
/// Operations in which lanes meet; all but SyncWarp carry values.
enum class WarpOp : std::uint8_t { Sync, Shuffle, Ballot, Any, All, MatchAny, MatchAll };

/// What a thread's fence orders before the thread's later strong writes.
struct FenceMark {
  // The thread's own accesses before it have lower clocks; 0: no fence yet
  std::uint32_t clock = 0;
  std::uint32_t warp_floor = 0, block_floor = 0;
  KnowledgePtr knowledge;
  KnowledgePtr release;  // all of that, made when a strong write first needs it
};

struct Thread {
  Fiber fiber;
  std::uint32_t id = 0;     // in the grid: block << shift | rank
  std::uint32_t rank = 0;   // in the block
  std::uint32_t slot = 0;   // of its block
  std::uint32_t clock = 1;  // counts what may order accesses
  Dim index;
  Wait waits = Wait::None;
  // Only while it waits:
  WarpOp op = WarpOp::Sync;
  std::uint32_t mask = 0, source = 0, site = 0;  // site: also that of its last strong read
  std::uint64_t value = 0, result = 0;
  // For the order of accesses:
  KnowledgePtr knowledge, pending;  // pending: read, but only known from the next fence on
  FenceMark fence;
  std::uint64_t loop_steps = 0;
};

struct Warp {
  std::uint32_t ready = 0, done = 0, exists = 0;  // lanes
  // Lanes that wait for the warp; lanes that wait for the block
  std::uint32_t waiting = 0, at_barrier = 0;
  bool is_uniform = true;           // all lanes that wait for the warp came for the same operation
  std::uint32_t first_waiting = 0;  // lane
  std::uint32_t floor = 1;          // lanes know each other's accesses with lower clocks
};

/// A block's place on the device; blocks use it one after another.
struct Slot {
  std::uint64_t block = 0;  // in the grid
  Dim index;
  std::uint32_t floor = 1;              // as in warps, for the whole block
  std::uint32_t arrived = 0, done = 0;  // threads
  BlockOp op = BlockOp::Sync;
  std::uint32_t site = 0;  // of the barrier at which they wait
  std::uint32_t result = 0, arrived_result = 0;
  std::uint64_t generation = 0;  // of shared memory in the shadow
  std::uint64_t fence_time = 0;  // atomics before the last fence
};

/// The resident blocks, and which of their threads can run.
struct ResidentBlocks {
  explicit ResidentBlocks(const LaunchRequest& request);
  void resize(std::uint32_t num_slots);

  Thread* threads_of(std::uint32_t slot) {
    return &threads[std::size_t{slot} * block_warps * kWarpLanes];
  }
  Warp& warp_of(const Thread& thread) {
    return warps[thread.slot * block_warps + thread.rank / kWarpLanes];
  }
  Thread& lane_of(const Thread& thread, std::uint32_t lane) {
    return threads_of(thread.slot)[thread.rank / kWarpLanes * kWarpLanes + lane];
  }
  void set_ready(const Thread& of_warp, std::uint32_t lanes);
  void set_not_ready(Thread& thread);

  std::uint32_t block_threads, block_warps, block_shift;
  std::uint64_t num_blocks, next_block = 0;  // of the grid
  std::uint64_t slot_bytes = 0;              // of shared memory
  std::vector<Slot> slots;
  std::vector<Warp> warps;
  std::vector<Thread> threads;
  std::vector<std::uint32_t> runnable;  // warps with ready lanes
  std::vector<std::uint32_t> place_in;  // by warp: its index in `runnable`
  std::uint64_t num_ready = 0;          // threads
  Thread* current = nullptr;            // the thread that runs
};

/// The numbers that choose a schedule, the same on every machine (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  /// Below `bound`, which is at least 1 and at most 2^32.
  std::uint32_t below(std::uint64_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace cinch::emulator
