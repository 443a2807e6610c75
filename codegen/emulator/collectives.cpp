// Where threads meet: barriers of a block, and what lanes of a warp do together. Lanes compare what
// they came for: the operation, its place in the text, the mask.
#include <bit>

#include "codegen/emulator/launch.h"

namespace cinch::emulator {
namespace {

const char* name_of(WarpOp op) {
  switch (op) {
    case WarpOp::Sync:
      return "__syncwarp";
    case WarpOp::Shuffle:
      return "a shuffle";
    case WarpOp::Ballot:
    case WarpOp::Any:
    case WarpOp::All:
      return "a vote";
    case WarpOp::MatchAny:
    case WarpOp::MatchAll:
      break;
  }
  return "a match";
}

}  // namespace

std::uint32_t Launch::sync_block(BlockOp op, std::uint32_t value, std::uint32_t site) {
  Thread& me = *current_;
  Slot& slot = slots_[me.slot];
  me.site = site;
  check_waiting_for(me, "is at a barrier");
  check_barrier(slot, op, site);
  if (is_cut_off_) cut_off();
  if (slot.arrived == 0) {
    slot.op = op;
    slot.site = site;
    slot.arrived_result = op == BlockOp::And ? 1 : 0;
  }
  switch (op) {
    case BlockOp::Sync:
      break;
    case BlockOp::Count:
      slot.arrived_result += value;
      break;
    case BlockOp::And:
      slot.arrived_result &= value;
      break;
    case BlockOp::Or:
      slot.arrived_result |= value;
      break;
  }
  if (++slot.arrived < block_threads_) {
    me.waits = Wait::Block;
    set_not_ready(me);
    yield();
    return slot.result;
  }
  slot.arrived = 0;
  slot.result = slot.arrived_result;
  Thread* threads = threads_of(me.slot);
  order_block(slot, threads);
  check_clock(me);
  for (std::uint32_t i = 0; i < block_threads_; ++i) {
    if (threads[i].waits != Wait::Block) continue;
    threads[i].waits = Wait::None;
    set_ready(threads[i]);
  }
  make_progress();
  return slot.result;
}

// Threads that came to another barrier, or have returned; site 0: this one returns.
void Launch::check_barrier(const Slot& slot, BlockOp op, std::uint32_t site) {
  if (slot.done == 0 && (slot.arrived == 0 || (slot.site == site && slot.op == op))) return;
  const std::string me = thread_text(current_->id);
  if (slot.arrived > 0 && site == 0) {
    add_finding(FindingKind::DivergentBarrier, slot.site,
                me + " has returned while " + std::to_string(slot.arrived) +
                    " threads of its block wait at a barrier");
  } else if (slot.arrived > 0 && (slot.site != site || slot.op != op)) {
    add_finding(FindingKind::DivergentBarrier, site,
                me + " is at a barrier while " + std::to_string(slot.arrived) +
                    " threads of its block wait at another one, " + line_text(slot.site));
  } else {
    add_finding(FindingKind::DivergentBarrier, site,
                me + " is at a barrier that " + std::to_string(slot.done) +
                    " threads of its block, which have returned, do not come to");
  }
  is_cut_off_ = true;
}

// Lanes that wait for this one, which goes where they are not.
void Launch::check_waiting_for(const Thread& thread, const char* does) {
  const std::uint32_t own = 1u << (thread.rank % kWarpLanes);
  for (std::uint32_t lanes = warp_of(thread).waiting; lanes != 0; lanes &= lanes - 1) {
    const Thread& lane = lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    if ((lane.mask & own) == 0) continue;
    add_finding(FindingKind::DivergentWarp, lane.site,
                thread_text(lane.id) + " waits in " + name_of(lane.op) + " for " +
                    thread_text(thread.id) + ", which " + does);
    is_cut_off_ = true;
    return;
  }
}

std::uint64_t Launch::meet_warp(WarpOp op, std::uint32_t mask, std::uint64_t value,
                                std::uint32_t source, std::uint32_t site) {
  Thread& me = *current_;
  me.op = op;
  me.mask = mask;
  me.value = value;
  me.source = source;
  me.site = site;
  check_lanes(me);
  if (is_cut_off_) cut_off();
  Warp& warp = warp_of(me);
  warp.waiting |= 1u << (me.rank % kWarpLanes);
  me.waits = Wait::Warp;
  if (has_all_lanes(me)) {
    complete_warp(me);
    if (is_cut_off_) cut_off();
  } else {
    set_not_ready(me);
    yield();
  }
  return me.result;
}

// Lanes of the mask that are gone, or are elsewhere and wait for this one in turn.
void Launch::check_lanes(const Thread& thread) {
  const std::uint32_t own = 1u << (thread.rank % kWarpLanes);
  Warp& warp = warp_of(thread);
  const char* name = name_of(thread.op);
  if ((thread.mask & own) == 0) {
    add_finding(FindingKind::DivergentWarp, thread.site,
                thread_text(thread.id) + " is in " + name + " whose mask leaves out its own lane");
    is_cut_off_ = true;
    return;
  }
  for (std::uint32_t lanes = thread.mask & ~own; lanes != 0; lanes &= lanes - 1) {
    const auto number = static_cast<std::uint32_t>(std::countr_zero(lanes));
    const std::uint32_t bit = 1u << number;
    const Thread& lane = lane_of(thread, number);
    std::string where;
    if ((warp.exists & ~warp.done & bit) == 0) {
      where = "which is gone";
    } else if (lane.waits == Wait::Block) {
      where = "which is at a barrier, " + line_text(lane.site);
    } else if (lane.waits == Wait::Warp && (lane.mask & own) != 0 &&
               (lane.op != thread.op || lane.mask != thread.mask || lane.site != thread.site)) {
      where = std::string("which is in ") + name_of(lane.op) + " of other place or mask, " +
              line_text(lane.site);
    } else {
      continue;
    }
    add_finding(FindingKind::DivergentWarp, thread.site,
                thread_text(thread.id) + " is in " + name + " whose mask names lane " +
                    std::to_string(number) + ", " + where);
    is_cut_off_ = true;
    return;
  }
}

bool Launch::has_all_lanes(const Thread& thread) {
  if ((thread.mask & ~warp_of(thread).waiting) != 0) return false;
  for (std::uint32_t lanes = thread.mask; lanes != 0; lanes &= lanes - 1) {
    const Thread& lane = lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    if (lane.mask != thread.mask || lane.op != thread.op) return false;
  }
  return true;
}

void Launch::complete_warp(Thread& thread) {
  Warp& warp = warp_of(thread);
  for (std::uint32_t lanes = thread.mask; lanes != 0; lanes &= lanes - 1) {
    Thread& lane = lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    lane.result = result_of(lane);
    lane.waits = Wait::None;
    if (&lane != &thread) set_ready(lane);
  }
  warp.waiting &= ~thread.mask;
  if (thread.op == WarpOp::Sync) {
    order_warp(thread, thread.mask);
    check_clock(thread);
  }
  make_progress();
}

// All lanes of the mask have come.
std::uint64_t Launch::result_of(const Thread& thread) {
  if (thread.op == WarpOp::Sync) return 0;
  if (thread.op == WarpOp::Shuffle) {
    if ((thread.mask >> thread.source & 1) == 0) {
      add_finding(FindingKind::DivergentWarp, thread.site,
                  thread_text(thread.id) + " reads lane " + std::to_string(thread.source) +
                      " in a shuffle whose mask leaves that lane out");
      is_cut_off_ = true;
      return 0;
    }
    return lane_of(thread, thread.source).value;
  }
  std::uint32_t nonzero = 0, equal = 0;
  for (std::uint32_t lanes = thread.mask; lanes != 0; lanes &= lanes - 1) {
    const auto number = static_cast<std::uint32_t>(std::countr_zero(lanes));
    const std::uint64_t value = lane_of(thread, number).value;
    nonzero |= (value != 0 ? 1u : 0u) << number;
    equal |= (value == thread.value ? 1u : 0u) << number;
  }
  switch (thread.op) {
    case WarpOp::Ballot:
      return nonzero;
    case WarpOp::Any:
      return nonzero != 0 ? 1 : 0;
    case WarpOp::All:
      return nonzero == thread.mask ? 1 : 0;
    case WarpOp::MatchAny:
      return equal;
    default:
      return equal == thread.mask ? equal : 0;
  }
}

}  // namespace cinch::emulator
