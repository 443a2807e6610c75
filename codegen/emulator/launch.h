// Launch: one run of a kernel's grid. It holds the schedule and the implementation of the hooks
// through which a module's code acts on the launch that runs.
#pragma once

#include "codegen/emulator/races/order.h"

namespace cinch::emulator {

/// The device's parts that it uses; they outlive it.
struct LaunchPlace {
  Arena& arena;
  Shadow& shadow;
  StackPool& stacks;
  std::uint64_t& generation;  // of the shadow: no number is used twice
};

class Launch {
 public:
  Launch(const LaunchRequest& request, const LaunchPlace& place);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// At most one launch of a process runs at a time. Errors: those of Gpu::launch.
  rt::Status run();
  std::vector<Finding>& findings() { return reporter_.findings(); }

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
  std::uint32_t own_lane_bit() const { return 1u << (blocks_.current->rank % kWarpLanes); }
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
  static void thread_body();
  void finish_thread();
  void yield();
  void make_progress() { idle_steps_ = 0; }
  void check_clock(const Thread& thread);
  /// Leaves the running fiber for good. Its frames must not own memory.
  [[noreturn]] void cut_off();

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

  const LaunchRequest& request_;
  Arena& arena_;
  Shadow& shadow_;
  StackPool& stacks_;
  std::uint64_t& generation_;
  std::uint64_t launch_generation_;
  Random random_;
  Hooks hooks_;
  ResidentBlocks blocks_;
  Reporter reporter_;
  AccessOrder order_;
  std::uint64_t live_blocks_ = 0;
  std::vector<std::uint32_t> block_order_;
  std::uint64_t idle_steps_ = 0;  // yields without progress
  Fiber scheduler_;
  bool is_cut_off_ = false, has_no_memory_ = false;
};

/// The launch that runs in this process, or null.
extern Launch* g_launch;

/// A table whose functions act on g_launch; without checks, accesses are not reported to it.
Hooks make_hooks(bool checks);

}  // namespace cinch::emulator
