// Blocks, warps, threads, and the order in which they run.
#include <sys/mman.h>
#include <boost/context/detail/fcontext.hpp>

#include <algorithm>
#include <bit>
#include <new>

#include "codegen/emulator/launch.h"
#include "runtime/core/sanitizer.h"

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

ResidentBlocks::ResidentBlocks(const LaunchRequest& request)
    : block_threads(request.block.x * request.block.y * request.block.z),
      block_warps((block_threads + kWarpLanes - 1) / kWarpLanes),
      block_shift(static_cast<std::uint32_t>(std::bit_width(block_warps * kWarpLanes - 1))),
      num_blocks(std::uint64_t{request.grid.x} * request.grid.y * request.grid.z) {}

void ResidentBlocks::resize(std::uint32_t num_slots) {
  slots.resize(num_slots);
  warps.resize(std::size_t{num_slots} * block_warps);
  place_in.resize(warps.size());
  threads.resize(warps.size() * kWarpLanes);
}

void ResidentBlocks::set_ready(const Thread& of_warp, std::uint32_t lanes) {
  if (lanes == 0) return;
  Warp& warp = warp_of(of_warp);
  if (warp.ready == 0) {
    const auto number = static_cast<std::uint32_t>(&warp - warps.data());
    place_in[number] = static_cast<std::uint32_t>(runnable.size());
    runnable.push_back(number);
  }
  warp.ready |= lanes;
  num_ready += static_cast<std::uint64_t>(std::popcount(lanes));
}

void ResidentBlocks::set_not_ready(Thread& thread) {
  Warp& warp = warp_of(thread);
  warp.ready &= ~(1u << (thread.rank % kWarpLanes));
  --num_ready;
  if (warp.ready != 0) return;
  const auto number = static_cast<std::uint32_t>(&warp - warps.data());
  const std::uint32_t last = runnable.back();
  runnable[place_in[number]] = last;
  place_in[last] = place_in[number];
  runnable.pop_back();
}

Launch::Launch(const LaunchRequest& request, const LaunchPlace& place)
    : request_(request),
      arena_(place.arena),
      shadow_(place.shadow),
      stacks_(place.stacks),
      generation_(place.generation),
      launch_generation_(++place.generation),
      random_(request.seed),
      hooks_(make_hooks(request.checks)),
      blocks_(request),
      reporter_(request, place.arena, blocks_),
      order_(blocks_, place.arena, place.shadow, random_, launch_generation_) {}

void Launch::prepare() {
  hooks_.block_dim = request_.block;
  hooks_.grid_dim = request_.grid;
  blocks_.slot_bytes =
      (shared_end(*request_.kernel, request_.shared_bytes) + kSharedPageBytes - 1) /
      kSharedPageBytes * kSharedPageBytes;
  // Runs several blocks at once if there are several: one at a time would hide missing
  // synchronisation.
  const std::uint64_t most = std::min<std::uint64_t>(request_.max_resident_blocks,
                                                     arena_.shared_bytes() / blocks_.slot_bytes);
  const std::uint64_t drawn = most < 2 ? 1 : 2 + random_.below(most - 1);
  const auto num_slots = static_cast<std::uint32_t>(std::min(blocks_.num_blocks, drawn));
  block_order_.resize(blocks_.num_blocks);
  for (std::uint32_t i = 0; i < blocks_.num_blocks; ++i) block_order_[i] = i;
  for (std::uint64_t i = blocks_.num_blocks; i > 1; --i) {
    std::swap(block_order_[i - 1], block_order_[random_.below(i)]);
  }
  blocks_.resize(num_slots);
  stacks_.resize(blocks_.threads.size());
  for (std::uint32_t slot = 0; slot < num_slots; ++slot) start_block(slot);
}

void Launch::start_block(std::uint32_t slot_number) {
  const std::uint64_t block = block_order_[blocks_.next_block++];
  Slot& slot = blocks_.slots[slot_number];
  slot = Slot{};
  slot.block = block;
  slot.index = index_in(block, request_.grid);
  slot.generation = ++generation_;
  ++live_blocks_;
  std::uint8_t* state = arena_.state() + arena_.shared_begin() + slot_number * blocks_.slot_bytes;
  std::fill_n(state, blocks_.slot_bytes, std::uint8_t{0});
  const KernelEntry& kernel = *request_.kernel;
  for (std::uint64_t i = 0; i < kernel.num_shared; ++i) {
    std::fill_n(state + kernel.shared[i].offset, kernel.shared[i].size_bytes, kAllocated);
  }
  if (kernel.dynamic_offset != kNoDynamicShared) {
    std::fill_n(state + kernel.dynamic_offset, request_.shared_bytes, kAllocated);
  }
  for (std::uint32_t warp = 0; warp < blocks_.block_warps; ++warp) {
    blocks_.warps[slot_number * blocks_.block_warps + warp] = Warp{};
  }
  for (std::uint32_t rank = 0; rank < blocks_.block_threads; ++rank)
    start_thread(slot_number, rank);
  make_progress();
}

void Launch::start_thread(std::uint32_t slot, std::uint32_t rank) {
  Thread& thread = blocks_.threads_of(slot)[rank];
  // A fiber whose thread has returned starts the next thread.
  const Fiber fiber =
      thread.fiber.context
          ? thread.fiber
          : stacks_.make(static_cast<std::size_t>(&thread - blocks_.threads.data()), thread_body);
  thread = Thread{};
  thread.fiber = fiber;
  thread.rank = rank;
  thread.slot = slot;
  thread.id = static_cast<std::uint32_t>(blocks_.slots[slot].block << blocks_.block_shift) | rank;
  thread.index = index_in(rank, request_.block);
  blocks_.warp_of(thread).exists |= 1u << (rank % kWarpLanes);
  blocks_.set_ready(thread, 1u << (rank % kWarpLanes));
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
  if (reporter_.findings().empty()) return rt::Ok{};
  const bool hangs = reporter_.findings().back().kind == FindingKind::Hang;
  return rt::fail(hangs ? rt::ErrorKind::Internal : rt::ErrorKind::CheckFailed,
                  reporter_.all_findings());
}

void Launch::schedule() {
  while (live_blocks_ > 0 && !is_cut_off_) {
    const bool is_patient = idle_steps_ < kPatience + kPatiencePerThread * blocks_.num_ready;
    if (blocks_.runnable.empty() || !is_patient) {
      reporter_.add_stuck();
      return;
    }
    run_warp(blocks_.runnable[random_.below(blocks_.runnable.size())]);
  }
}

// Runs all lanes in turn for some rounds, sometimes only a single lane.
void Launch::run_warp(std::uint32_t number) {
  Warp& warp = blocks_.warps[number];
  Thread* lanes = &blocks_.threads[std::size_t{number} * kWarpLanes];
  const std::uint64_t choice = random_.next();
  const auto first = static_cast<unsigned>(choice >> 16) % kWarpLanes;
  if ((choice & 7) == 0) {
    const std::uint32_t turned = std::rotr(warp.ready, static_cast<int>(first));
    resume(lanes[(static_cast<unsigned>(std::countr_zero(turned)) + first) % kWarpLanes]);
    return;
  }
  const std::uint64_t block = blocks_.slots[lanes[0].slot].block;
  const unsigned rounds = 1 + (static_cast<unsigned>(choice >> 8) & 3);
  for (unsigned round = 0; round < rounds && warp.ready != 0; ++round) {
    std::uint32_t turned = std::rotr(warp.ready, static_cast<int>(first));
    for (; turned != 0; turned &= turned - 1) {
      const unsigned lane = (static_cast<unsigned>(std::countr_zero(turned)) + first) % kWarpLanes;
      resume(lanes[lane]);
      if (is_cut_off_ || blocks_.slots[lanes[0].slot].block != block) return;
    }
  }
}

void Launch::resume(Thread& thread) {
  Slot& slot = blocks_.slots[thread.slot];
  const std::uint64_t left = request_.max_loop_steps - thread.loop_steps;
  const std::uint64_t fuel = std::min(kFuelSlice, left + 1);
  hooks_.thread = thread.index;
  hooks_.block = slot.index;
  hooks_.shared = arena_.base() + arena_.shared_begin() + thread.slot * blocks_.slot_bytes;
  hooks_.fuel = fuel;
  blocks_.current = &thread;
  switch_fibers(scheduler_, thread.fiber);
  if (is_cut_off_) return;
  thread.loop_steps = std::min(request_.max_loop_steps, thread.loop_steps + fuel - hooks_.fuel);
  if (slot.done == blocks_.block_threads) {
    --live_blocks_;
    if (blocks_.next_block < blocks_.num_blocks) start_block(thread.slot);
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
  Thread& thread = *blocks_.current;
  check_waiting_for(thread, "has returned");
  Slot& slot = blocks_.slots[thread.slot];
  if (slot.arrived > 0) check_barrier(slot, slot.op, 0);
  if (is_cut_off_) cut_off();
  thread.waits = Wait::Done;
  blocks_.warp_of(thread).done |= 1u << (thread.rank % kWarpLanes);
  ++slot.done;
  blocks_.set_not_ready(thread);
  make_progress();
  yield();
}

void Launch::yield() {
  switch_fibers(blocks_.current->fiber, scheduler_);
}

void Launch::out_of_fuel(std::uint32_t site) {
  Thread& thread = *blocks_.current;
  if (thread.loop_steps + kFuelSlice > request_.max_loop_steps) {
    reporter_.add(FindingKind::Hang, site,
                  "a loop of " + reporter_.thread_text(thread.id) + " has run " +
                      std::to_string(request_.max_loop_steps) + " times and does not end");
    cut_off();
  }
  yield();
}

void Launch::check_clock(const Thread& thread) {
  if (thread.clock >> Access::kClockBits == 0) return;
  reporter_.add(FindingKind::Hang, 0,
                "a launch synchronises more often than its order can be kept");
  cut_off();
}

void Launch::cut_off() {
  is_cut_off_ = true;
  switch_fibers(blocks_.current->fiber, scheduler_);
  __builtin_unreachable();
}

void Launch::trap(std::uint32_t site) {
  reporter_.add(FindingKind::Trap, site, reporter_.thread_text(blocks_.current->id) + " gave up");
  cut_off();
}

void Launch::fence() {
  order_.fence();
  check_clock(*blocks_.current);
}

void Launch::give_up() {
  has_no_memory_ = true;
  cut_off();
}

}  // namespace cinch::emulator

#ifdef CINCH_HAS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace cinch::emulator {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t kGuardBytes = 4096;
// Stacks begin at different offsets within their pages: otherwise all would use the same few lines
// of the processor's caches.
constexpr std::size_t kColours = 128, kColourBytes = 192;
constexpr std::size_t kStrideBytes = kStackBytes + kGuardBytes;

// The fiber that switched last.
Fiber* g_from = nullptr;

void enter(context::transfer_t transfer) {
  g_from->context = transfer.fctx;
  static_cast<const Fiber*>(transfer.data)->body();
}

}  // namespace

StackPool::~StackPool() {
  if (memory_) ::munmap(memory_, kStrideBytes * num_stacks_);
}

char* StackPool::begin_of(std::size_t index) const {
  return memory_ + index * kStrideBytes + kGuardBytes;
}

void StackPool::resize(std::size_t num_stacks) {
  if (num_stacks <= num_stacks_) return;
  void* memory = ::mmap(nullptr, kStrideBytes * num_stacks, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (memory_) ::munmap(memory_, kStrideBytes * num_stacks_);
  memory_ = static_cast<char*>(memory);
  num_stacks_ = num_stacks;
  for (std::size_t i = 0; i < num_stacks_; ++i) {
    (void)::mprotect(begin_of(i) - kGuardBytes, kGuardBytes, PROT_NONE);
  }
}

void StackPool::abandon() {
#ifdef CINCH_HAS_ADDRESS_SANITIZER
  for (std::size_t i = 0; i < used_stacks_; ++i) {
    __asan_unpoison_memory_region(begin_of(i), kStackBytes);
  }
#endif
  used_stacks_ = 0;
}

Fiber StackPool::make(std::size_t index, void (*body)()) {
  Fiber fiber{.stack_begin = begin_of(index), .stack_bytes = kStackBytes};
  const std::size_t usable = kStackBytes - index % kColours * kColourBytes;
  fiber.context = context::make_fcontext(begin_of(index) + usable, usable, enter);
  fiber.body = body;
  used_stacks_ = std::max(used_stacks_, index + 1);
  return fiber;
}

void switch_fibers(Fiber& from, Fiber& to) {
#ifdef CINCH_HAS_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(&from.sanitizer_stack, to.stack_begin, to.stack_bytes);
#endif
  g_from = &from;
  const context::transfer_t transfer = context::jump_fcontext(to.context, &to);
  g_from->context = transfer.fctx;
#ifdef CINCH_HAS_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(from.sanitizer_stack, nullptr, nullptr);
#endif
}

void arrive_first([[maybe_unused]] Fiber& from) {
#ifdef CINCH_HAS_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &from.stack_begin, &from.stack_bytes);
#endif
}

}  // namespace cinch::emulator
