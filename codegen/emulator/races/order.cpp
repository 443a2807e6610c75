// Which accesses are known to come before which: floors of blocks and warps for barriers and
// __syncwarp, knowledge for fences with strong accesses.
#include <algorithm>
#include <bit>

#include "codegen/emulator/launch.h"

namespace cinch::emulator {

bool Launch::is_known(const Access& access) const {
  const Thread& me = *current_;
  const std::uint32_t thread = access.thread(), clock = access.clock();
  if (thread == me.id) return true;
  if (thread >> block_shift_ == me.id >> block_shift_) {
    if (clock < slots_[me.slot].floor) return true;
    const Warp& warp = warps_[me.slot * block_warps_ + me.rank / kWarpLanes];
    if (thread / kWarpLanes == me.id / kWarpLanes && clock < warp.floor) return true;
  }
  return me.knowledge && me.knowledge->covers(thread, clock);
}

void Launch::check_clock(const Thread& thread) {
  if (thread.clock >> Access::kClockBits == 0) return;
  add_finding(FindingKind::Hang, 0, "a launch synchronises more often than its order can be kept");
  cut_off();
}

// Afterwards all threads of the block know what any of them knew or did.
void Launch::order_block(Slot& slot, Thread* threads) {
  std::uint32_t latest = 0;
  KnowledgePtr knowledge;
  for (std::uint32_t i = 0; i < block_threads_; ++i) {
    latest = std::max(latest, threads[i].clock);
    knowledge = joined(knowledge, threads[i].knowledge);
  }
  for (std::uint32_t i = 0; i < block_threads_; ++i) {
    threads[i].clock = latest + 1;
    threads[i].knowledge = knowledge;
  }
  slot.floor = latest + 1;
  for (std::uint32_t warp = 0; warp < block_warps_; ++warp) {
    warps_[threads[0].slot * block_warps_ + warp].floor = latest + 1;
  }
}

// The same for the lanes of a mask.
void Launch::order_warp(Thread& thread, std::uint32_t mask) {
  Warp& warp = warp_of(thread);
  const bool is_whole = (mask & ~warp.done) == (warp.exists & ~warp.done);
  std::uint32_t latest = 0;
  KnowledgePtr knowledge;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const Thread& lane = lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    latest = std::max(latest, lane.clock);
    knowledge = joined(knowledge, lane.knowledge);
  }
  if (is_whole) {
    warp.floor = latest + 1;
  } else {
    auto more = knowledge ? std::make_shared<Knowledge>(*knowledge) : std::make_shared<Knowledge>();
    for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
      const Thread& lane = lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
      more->add_thread(lane.id, lane.clock + 1);
    }
    knowledge = std::move(more);
  }
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    Thread& lane = lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    lane.clock = latest + 1;
    lane.knowledge = knowledge;
  }
}

void Launch::fence() {
  Thread& me = *current_;
  me.knowledge = joined(me.knowledge, me.pending);
  me.pending = nullptr;
  me.fence = {me.clock + 1, warp_of(me).floor, slots_[me.slot].floor, me.knowledge, nullptr};
  me.clock += 1;
  check_clock(me);
  if (histories_.empty()) return;
  slots_[me.slot].fence_time = atomic_time_;
  std::uint32_t& last = last_fences_[me.id >> block_shift_];
  last = std::max(last, me.clock);
}

const KnowledgePtr& Launch::release_of(Thread& thread) const {
  FenceMark& fence = thread.fence;
  if (fence.release) return fence.release;
  auto release = fence.knowledge ? std::make_shared<Knowledge>(*fence.knowledge)
                                 : std::make_shared<Knowledge>();
  const std::uint32_t first = (thread.id >> block_shift_ << block_shift_) / kWarpLanes;
  for (std::uint32_t warp = 0; warp < block_warps_; ++warp) {
    release->add_warp(first + warp, fence.block_floor);
  }
  release->add_warp(thread.id / kWarpLanes, fence.warp_floor);
  release->add_thread(thread.id, fence.clock);
  fence.release = std::move(release);
  return fence.release;
}

// The knowledge that a read of the newest value acquires.
KnowledgePtr Launch::release_at(const void* at) const {
  if (releases_.empty()) return nullptr;
  const auto found = releases_.find(at);
  return found == releases_.end() ? nullptr : found->second;
}

// An update continues the release sequence of the value that it found.
void Launch::release_to(const void* at, bool is_update) {
  Thread& me = *current_;
  if (me.fence.clock == 0) {
    if (!is_update && !releases_.empty()) releases_.erase(at);
    return;
  }
  const KnowledgePtr& release = release_of(me);
  KnowledgePtr& there = releases_[at];
  there = is_update ? joined(there, release) : release;
}

}  // namespace cinch::emulator
