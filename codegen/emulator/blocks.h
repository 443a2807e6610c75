// The blocks of a launch that are on the device, with their warps, their threads, and the
// switchable stacks of these.
#pragma once

#include <cstddef>

#include "codegen/emulator/module.h"
#include "codegen/emulator/races/shadow.h"

namespace cinch::emulator {
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
