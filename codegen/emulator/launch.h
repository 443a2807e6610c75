// Launch: one run of a kernel's grid. Holds blocks, warps and threads with what each knows of the
// others' accesses; the schedule; and the implementation of hooks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/emulator/arena.h"
#include "codegen/emulator/fibers.h"
#include "codegen/emulator/module.h"
#include "codegen/emulator/races/finding.h"
#include "codegen/emulator/races/history.h"
#include "codegen/emulator/races/knowledge.h"
#include "codegen/emulator/races/shadow.h"
#include "codegen/emulator/random.h"

namespace cinch::emulator {

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

/// The device's parts that it uses; they outlive it.
struct LaunchPlace {
  Arena& arena;
  Shadow& shadow;
  StackPool& stacks;
  std::uint64_t& generation;  // of the shadow: no number is used twice
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

class Launch {
 public:
  Launch(const LaunchRequest& request, const LaunchPlace& place);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// At most one launch of a process runs at a time. Errors: those of Gpu::launch.
  rt::Status run();
  std::vector<Finding>& findings() { return findings_; }

  // Implementation of hooks, called on fibers. A hook that does not return has cut the launch off.
  void access(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site,
              bool is_strong, bool is_write);
  void strong_access(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site,
                     bool is_write);
  std::uint64_t atomic(AtomicOp op, void* at, std::uint32_t size, std::uint64_t value,
                       std::uint64_t compare, std::uint32_t site);
  void fence();
  std::uint32_t sync_block(BlockOp op, std::uint32_t value, std::uint32_t site);
  /// `source` is the lane that a shuffle reads. Returns the operation's result for this lane.
  std::uint64_t meet_warp(WarpOp op, std::uint32_t mask, std::uint64_t value, std::uint32_t source,
                          std::uint32_t site);
  std::uint32_t own_lane_bit() const { return 1u << (current_->rank % kWarpLanes); }
  void out_of_fuel(std::uint32_t site);
  void trap(std::uint32_t site);
  /// Call this if a hook has run out of memory.
  [[noreturn]] void give_up();

 private:
  // launch.cpp: blocks, warps and their order
  void prepare();
  void start_block(std::uint32_t slot);
  void start_thread(std::uint32_t slot, std::uint32_t rank);
  void schedule();
  void run_warp(std::uint32_t number);
  void resume(Thread& thread);
  bool is_patient() const;
  static void thread_body();
  void finish_thread();
  void yield();
  void set_ready(const Thread& of_warp, std::uint32_t lanes);
  void set_not_ready(Thread& thread);
  void make_progress() { idle_steps_ = 0; }
  Thread* threads_of(std::uint32_t slot) {
    return &threads_[std::size_t{slot} * block_warps_ * kWarpLanes];
  }
  Warp& warp_of(const Thread& thread) {
    return warps_[thread.slot * block_warps_ + thread.rank / kWarpLanes];
  }
  Thread& lane_of(const Thread& thread, std::uint32_t lane) {
    return threads_of(thread.slot)[thread.rank / kWarpLanes * kWarpLanes + lane];
  }
  // order.cpp: which accesses are known to come before which
  bool is_known(const Access& access) const;
  void check_clock(const Thread& thread);
  void order_block(Slot& slot, Thread* threads);
  void order_warp(Thread& thread, std::uint32_t mask);
  const KnowledgePtr& release_of(Thread& thread) const;
  KnowledgePtr release_at(const void* at) const;
  void release_to(const void* at, bool is_update);

  // accesses.cpp
  bool find_place(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site,
                  bool is_write);
  bool is_elsewhere(const void* at, std::uint64_t size, bool is_write) const;
  void check_written(std::uint64_t offset, std::uint64_t size, std::uint32_t site);
  void order_access(std::uint64_t offset, std::uint64_t size, std::uint32_t site, bool is_strong,
                    bool is_write);
  void order_read(Cell& cell, const Access& own, std::uint64_t offset);
  void order_write(Cell& cell, const Access& own, std::uint64_t offset);
  void order_atomic(AtomicOp op, const void* at, std::uint32_t size, std::uint32_t site);
  History* history_before(AtomicOp op, const void* at, std::uint32_t size);
  std::uint64_t generation_of(std::uint64_t offset) const;

  // history.cpp: the values that atomic loads may return
  bool is_behind(const Access& access, std::uint64_t time) const;
  History* history_of(const void* at, std::uint32_t size, bool makes);
  std::uint64_t load_held(History& history, std::uint32_t site);
  void add_held(History& history, const void* at, std::uint32_t site);

  // collectives.cpp
  bool join_meeting(Thread& thread);
  void complete_warp(Thread& thread);
  std::uint64_t shuffled(const Thread& thread);
  std::uint32_t matching(const Thread& thread);
  std::uint64_t voted(const Thread& thread);
  void check_lanes(const Thread& thread);
  void report_lane(const Thread& thread, std::uint32_t number);
  void check_barrier(const Slot& slot, BlockOp op, std::uint32_t site);
  void check_waiting_for(const Thread& thread, const char* does);

  // report.cpp
  bool is_new(FindingKind kind, std::uint32_t site);
  void add_finding(FindingKind kind, std::uint32_t site, const std::string& what);
  /// Leaves the running fiber for good. Its frames must not own memory.
  [[noreturn]] void cut_off();
  std::string thread_text(std::uint32_t id) const;
  std::string place_text(std::uint64_t offset, std::uint64_t size) const;
  std::string shared_text(std::uint64_t offset) const;
  std::string line_text(std::uint32_t site) const;
  void report_outside(const void* at, std::uint64_t size, std::uint32_t site, bool is_write);
  void report_race(const Access& before, const Access& now, std::uint64_t offset,
                   const char* before_did, const char* now_does);
  void report_stuck();
  std::string all_findings() const;
  int line_of(std::uint32_t site) const;

  const LaunchRequest& request_;
  Arena& arena_;
  Shadow& shadow_;
  StackPool& stacks_;
  std::uint64_t& generation_;
  std::uint64_t launch_generation_ = 0;
  Random random_;
  Hooks hooks_;
  std::uint32_t block_threads_ = 0, block_warps_ = 0, block_shift_ = 0;
  std::uint64_t num_blocks_ = 0, next_block_ = 0, live_blocks_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::vector<std::uint32_t> block_order_;
  std::vector<Slot> slots_;
  std::vector<Warp> warps_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> runnable_;  // warps with ready lanes
  std::vector<std::uint32_t> place_in_;  // by warp: its index in runnable_
  std::uint64_t num_ready_ = 0;          // threads
  std::uint64_t idle_steps_ = 0;         // yields without progress
  Fiber scheduler_;
  Thread* current_ = nullptr;
  bool is_cut_off_ = false, has_no_memory_ = false;
  std::unordered_map<const void*, KnowledgePtr> releases_;        // by address of a strong write
  std::unordered_map<const void*, History> histories_;            // by address
  std::unordered_map<std::uint32_t, std::uint32_t> last_fences_;  // clocks, by block
  std::uint64_t atomic_time_ = 0;                                 // number of atomics so far
  std::vector<Finding> findings_;
  std::set<std::pair<FindingKind, int>> reported_;
};

}  // namespace cinch::emulator
