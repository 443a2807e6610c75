// Blocks, warps, threads, and the order in which they run.
#include "codegen/emulator/launch.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "codegen/emulator/hook_table.h"

namespace cinch::emulator {
namespace {

// Back edges between two checks of the schedule.
constexpr std::uint64_t kFuelSlice = std::uint64_t{1} << 16;
constexpr std::uint64_t kSharedPageBytes = Shadow::kPageBytes;
constexpr std::uint64_t kSharedRedZoneBytes = 64;
// Limits of yields without progress by threads that wait for others' writes: for each ready thread,
// and at least. Beyond them they count as waiting for ever.
constexpr std::uint64_t kPatiencePerThread = 2000, kPatience = 100000;

std::uint64_t shared_end(const KernelEntry& kernel, std::size_t dynamic_bytes) {
  std::uint64_t end = kSharedRedZoneBytes;
  for (std::uint64_t i = 0; i < kernel.num_shared; ++i) {
    end = std::max(end, kernel.shared[i].offset + kernel.shared[i].size_bytes);
  }
  if (kernel.dynamic_offset != kNoDynamicShared) end = kernel.dynamic_offset + dynamic_bytes;
  return end + kSharedRedZoneBytes;
}

}  // namespace

Dim index_in(std::uint64_t linear, const Dim& size) {
  return {static_cast<std::uint32_t>(linear % size.x),
          static_cast<std::uint32_t>(linear / size.x % size.y),
          static_cast<std::uint32_t>(linear / size.x / size.y)};
}

Launch::Launch(const LaunchRequest& request, const LaunchPlace& place)
    : request_(request),
      arena_(place.arena),
      shadow_(place.shadow),
      stacks_(place.stacks),
      generation_(place.generation),
      random_(request.seed),
      hooks_(make_hooks(request.checks)) {
  block_threads_ = request.block.x * request.block.y * request.block.z;
  block_warps_ = (block_threads_ + kWarpLanes - 1) / kWarpLanes;
  block_shift_ = static_cast<std::uint32_t>(std::bit_width(block_warps_ * kWarpLanes - 1));
  num_blocks_ = std::uint64_t{request.grid.x} * request.grid.y * request.grid.z;
}

void Launch::prepare() {
  launch_generation_ = ++generation_;
  hooks_.block_dim = request_.block;
  hooks_.grid_dim = request_.grid;
  slot_bytes_ = (shared_end(*request_.kernel, request_.shared_bytes) + kSharedPageBytes - 1) /
                kSharedPageBytes * kSharedPageBytes;
  // Runs several blocks at once if there are several: one at a time would hide missing
  // synchronisation.
  const std::uint64_t most =
      std::min<std::uint64_t>(request_.max_resident_blocks, arena_.shared_bytes() / slot_bytes_);
  const std::uint64_t drawn = most < 2 ? 1 : 2 + random_.below(most - 1);
  const auto num_slots = static_cast<std::uint32_t>(std::min(num_blocks_, drawn));
  block_order_.resize(num_blocks_);
  for (std::uint32_t i = 0; i < num_blocks_; ++i) block_order_[i] = i;
  for (std::uint64_t i = num_blocks_; i > 1; --i) {
    std::swap(block_order_[i - 1], block_order_[random_.below(i)]);
  }
  slots_.resize(num_slots);
  warps_.resize(std::size_t{num_slots} * block_warps_);
  place_in_.resize(warps_.size());
  threads_.resize(warps_.size() * kWarpLanes);
  stacks_.resize(threads_.size());
  for (std::uint32_t slot = 0; slot < num_slots; ++slot) start_block(slot);
}

void Launch::start_block(std::uint32_t slot_number) {
  const std::uint64_t block = block_order_[next_block_++];
  Slot& slot = slots_[slot_number];
  slot = Slot{};
  slot.block = block;
  slot.index = index_in(block, request_.grid);
  slot.generation = ++generation_;
  ++live_blocks_;
  std::uint8_t* state = arena_.state() + arena_.shared_begin() + slot_number * slot_bytes_;
  std::fill_n(state, slot_bytes_, std::uint8_t{0});
  const KernelEntry& kernel = *request_.kernel;
  for (std::uint64_t i = 0; i < kernel.num_shared; ++i) {
    std::fill_n(state + kernel.shared[i].offset, kernel.shared[i].size_bytes, kAllocated);
  }
  if (kernel.dynamic_offset != kNoDynamicShared) {
    std::fill_n(state + kernel.dynamic_offset, request_.shared_bytes, kAllocated);
  }
  for (std::uint32_t warp = 0; warp < block_warps_; ++warp) {
    warps_[slot_number * block_warps_ + warp] = Warp{};
  }
  for (std::uint32_t rank = 0; rank < block_threads_; ++rank) start_thread(slot_number, rank);
  make_progress();
}

void Launch::start_thread(std::uint32_t slot, std::uint32_t rank) {
  Thread& thread = threads_of(slot)[rank];
  // A fiber whose thread has returned starts the next thread.
  const Fiber fiber =
      thread.fiber.context
          ? thread.fiber
          : stacks_.make(static_cast<std::size_t>(&thread - threads_.data()), thread_body);
  thread = Thread{};
  thread.fiber = fiber;
  thread.rank = rank;
  thread.slot = slot;
  thread.id = static_cast<std::uint32_t>(slots_[slot].block << block_shift_) | rank;
  thread.index = index_in(rank, request_.block);
  warp_of(thread).exists |= 1u << (rank % kWarpLanes);
  set_ready(thread, 1u << (rank % kWarpLanes));
}

rt::Status Launch::run() {
  g_launch = this;
  *request_.module->info().hooks = &hooks_;
  try {
    prepare();
    schedule();
  } catch (const std::bad_alloc&) {
    has_no_memory_ = true;
  }
  *request_.module->info().hooks = nullptr;
  g_launch = nullptr;
  stacks_.abandon();
  if (has_no_memory_) {
    return rt::fail(rt::ErrorKind::OutOfMemory, "no memory to emulate a launch");
  }
  if (findings_.empty()) return rt::Ok{};
  const bool hangs = findings_.back().kind == FindingKind::Hang;
  return rt::fail(hangs ? rt::ErrorKind::Internal : rt::ErrorKind::CheckFailed, all_findings());
}

void Launch::schedule() {
  while (live_blocks_ > 0 && !is_cut_off_) {
    if (runnable_.empty() || !is_patient()) {
      report_stuck();
      return;
    }
    run_warp(runnable_[random_.below(runnable_.size())]);
  }
}

bool Launch::is_patient() const {
  return idle_steps_ < kPatience + kPatiencePerThread * num_ready_;
}

// Runs all lanes in turn for some rounds, sometimes only a single lane.
void Launch::run_warp(std::uint32_t number) {
  Warp& warp = warps_[number];
  Thread* lanes = &threads_[std::size_t{number} * kWarpLanes];
  const std::uint64_t choice = random_.next();
  const auto first = static_cast<unsigned>(choice >> 16) % kWarpLanes;
  if ((choice & 7) == 0) {
    const std::uint32_t turned = std::rotr(warp.ready, static_cast<int>(first));
    resume(lanes[(static_cast<unsigned>(std::countr_zero(turned)) + first) % kWarpLanes]);
    return;
  }
  const std::uint64_t block = slots_[lanes[0].slot].block;
  const unsigned rounds = 1 + (static_cast<unsigned>(choice >> 8) & 3);
  for (unsigned round = 0; round < rounds && warp.ready != 0; ++round) {
    std::uint32_t turned = std::rotr(warp.ready, static_cast<int>(first));
    for (; turned != 0; turned &= turned - 1) {
      const unsigned lane = (static_cast<unsigned>(std::countr_zero(turned)) + first) % kWarpLanes;
      resume(lanes[lane]);
      if (is_cut_off_ || slots_[lanes[0].slot].block != block) return;
    }
  }
}

void Launch::resume(Thread& thread) {
  Slot& slot = slots_[thread.slot];
  const std::uint64_t left = request_.max_loop_steps - thread.loop_steps;
  const std::uint64_t fuel = std::min(kFuelSlice, left + 1);
  hooks_.thread = thread.index;
  hooks_.block = slot.index;
  hooks_.shared = arena_.base() + arena_.shared_begin() + thread.slot * slot_bytes_;
  hooks_.fuel = fuel;
  current_ = &thread;
  switch_fibers(scheduler_, thread.fiber);
  if (is_cut_off_) return;
  thread.loop_steps = std::min(request_.max_loop_steps, thread.loop_steps + fuel - hooks_.fuel);
  if (slot.done == block_threads_) {
    --live_blocks_;
    if (next_block_ < num_blocks_) start_block(thread.slot);
  }
}

// After a return, the fiber runs the thread of a later block in this place.
void Launch::thread_body() {
  arrive_first(g_launch->scheduler_);
  while (true) {
    g_launch->request_.kernel->run(g_launch->request_.params);
    g_launch->finish_thread();
  }
}

void Launch::finish_thread() {
  Thread& thread = *current_;
  check_waiting_for(thread, "has returned");
  Slot& slot = slots_[thread.slot];
  if (slot.arrived > 0) check_barrier(slot, slot.op, 0);
  if (is_cut_off_) cut_off();
  thread.waits = Wait::Done;
  warp_of(thread).done |= 1u << (thread.rank % kWarpLanes);
  ++slot.done;
  set_not_ready(thread);
  make_progress();
  yield();
}

void Launch::yield() {
  switch_fibers(current_->fiber, scheduler_);
}

void Launch::set_ready(const Thread& of_warp, std::uint32_t lanes) {
  if (lanes == 0) return;
  Warp& warp = warp_of(of_warp);
  if (warp.ready == 0) {
    const auto number = static_cast<std::uint32_t>(&warp - warps_.data());
    place_in_[number] = static_cast<std::uint32_t>(runnable_.size());
    runnable_.push_back(number);
  }
  warp.ready |= lanes;
  num_ready_ += static_cast<std::uint64_t>(std::popcount(lanes));
}

void Launch::set_not_ready(Thread& thread) {
  Warp& warp = warp_of(thread);
  warp.ready &= ~(1u << (thread.rank % kWarpLanes));
  --num_ready_;
  if (warp.ready != 0) return;
  const auto number = static_cast<std::uint32_t>(&warp - warps_.data());
  const std::uint32_t last = runnable_.back();
  runnable_[place_in_[number]] = last;
  place_in_[last] = place_in_[number];
  runnable_.pop_back();
}

void Launch::out_of_fuel(std::uint32_t site) {
  Thread& thread = *current_;
  if (thread.loop_steps + kFuelSlice > request_.max_loop_steps) {
    add_finding(FindingKind::Hang, site,
                "a loop of " + thread_text(thread.id) + " has run " +
                    std::to_string(request_.max_loop_steps) + " times and does not end");
    cut_off();
  }
  yield();
}

void Launch::give_up() {
  has_no_memory_ = true;
  cut_off();
}

}  // namespace cinch::emulator
