// Where threads meet: barriers of a block, and operations of a warp. Lanes must agree on the
// operation, its place in the text, and the mask.
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

bool is_vote(WarpOp op) {
  return op == WarpOp::Ballot || op == WarpOp::Any || op == WarpOp::All || op == WarpOp::MatchAll;
}

// Did two lanes come for the same operation?
bool is_same(const Thread& a, const Thread& b) {
  return a.op == b.op && a.mask == b.mask && a.site == b.site;
}

}  // namespace

std::uint32_t Launch::sync_block(BlockOp op, std::uint32_t value, std::uint32_t site) {
  Thread& me = *blocks_.current;
  Slot& slot = blocks_.slots[me.slot];
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
  if (++slot.arrived < blocks_.block_threads) {
    me.waits = Wait::Block;
    blocks_.warp_of(me).at_barrier |= 1u << (me.rank % kWarpLanes);
    blocks_.set_not_ready(me);
    yield();
    return slot.result;
  }
  slot.arrived = 0;
  slot.result = slot.arrived_result;
  Thread* threads = blocks_.threads_of(me.slot);
  for (std::uint32_t i = 0; i < blocks_.block_threads; ++i) threads[i].waits = Wait::None;
  order_.order_block(slot, threads);
  check_clock(me);
  for (std::uint32_t i = 0; i < blocks_.block_threads; i += kWarpLanes) {
    Warp& warp = blocks_.warp_of(threads[i]);
    blocks_.set_ready(threads[i], warp.at_barrier);
    warp.at_barrier = 0;
  }
  make_progress();
  return slot.result;
}

// Reports threads that are at another barrier, or have returned; site 0: this thread returns.
void Launch::check_barrier(const Slot& slot, BlockOp op, std::uint32_t site) {
  if (slot.done == 0 && (slot.arrived == 0 || (slot.site == site && slot.op == op))) return;
  const std::string me = reporter_.thread_text(blocks_.current->id);
  if (slot.arrived > 0 && site == 0) {
    reporter_.add(FindingKind::DivergentBarrier, slot.site,
                  me + " has returned while " + std::to_string(slot.arrived) +
                      " threads of its block wait at a barrier");
  } else if (slot.arrived > 0 && (slot.site != site || slot.op != op)) {
    reporter_.add(FindingKind::DivergentBarrier, site,
                  me + " is at a barrier while " + std::to_string(slot.arrived) +
                      " threads of its block wait at another one, " +
                      reporter_.line_text(slot.site));
  } else {
    reporter_.add(FindingKind::DivergentBarrier, site,
                  me + " is at a barrier that " + std::to_string(slot.done) +
                      " threads of its block, which have returned, do not come to");
  }
  is_cut_off_ = true;
}

// Reports lanes that wait for this one in an operation that it does not join.
void Launch::check_waiting_for(const Thread& thread, const char* does) {
  const std::uint32_t own = 1u << (thread.rank % kWarpLanes);
  for (std::uint32_t lanes = blocks_.warp_of(thread).waiting; lanes != 0; lanes &= lanes - 1) {
    const Thread& lane =
        blocks_.lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    if ((lane.mask & own) == 0) continue;
    reporter_.add(FindingKind::DivergentWarp, lane.site,
                  reporter_.thread_text(lane.id) + " waits in " + name_of(lane.op) + " for " +
                      reporter_.thread_text(thread.id) + ", which " + does);
    is_cut_off_ = true;
    return;
  }
}

std::uint64_t Launch::meet_warp(WarpOp op, std::uint32_t mask, std::uint64_t value,
                                std::uint32_t source, std::uint32_t site) {
  Thread& me = *blocks_.current;
  me.op = op;
  me.mask = mask;
  me.value = value;
  me.source = source;
  me.site = site;
  check_lanes(me);
  if (is_cut_off_) cut_off();
  if (join_meeting(me)) {
    complete_warp(me);
    if (is_cut_off_) cut_off();
  } else {
    blocks_.set_not_ready(me);
    yield();
  }
  return me.result;
}

// Reports lanes of the mask that have returned, or that wait for this one elsewhere.
void Launch::check_lanes(const Thread& thread) {
  const std::uint32_t own = 1u << (thread.rank % kWarpLanes);
  const Warp& warp = blocks_.warp_of(thread);
  if ((thread.mask & own) == 0) {
    reporter_.add(FindingKind::DivergentWarp, thread.site,
                  reporter_.thread_text(thread.id) + " is in " + name_of(thread.op) +
                      " whose mask leaves out its own lane");
    is_cut_off_ = true;
    return;
  }
  const std::uint32_t missing = thread.mask & (~warp.exists | warp.done | warp.at_barrier);
  if (missing != 0)
    return report_lane(thread, static_cast<std::uint32_t>(std::countr_zero(missing)));
  if (warp.waiting == 0) return;
  if (warp.is_uniform && is_same(blocks_.lane_of(thread, warp.first_waiting), thread)) return;
  for (std::uint32_t lanes = warp.waiting & thread.mask; lanes != 0; lanes &= lanes - 1) {
    const auto number = static_cast<std::uint32_t>(std::countr_zero(lanes));
    const Thread& lane = blocks_.lane_of(thread, number);
    if ((lane.mask & own) != 0 && !is_same(lane, thread)) return report_lane(thread, number);
  }
}

void Launch::report_lane(const Thread& thread, std::uint32_t number) {
  const Thread& lane = blocks_.lane_of(thread, number);
  const Warp& warp = blocks_.warp_of(thread);
  std::string where = "which is gone";
  if (warp.at_barrier >> number & 1) {
    where = "which is at a barrier, " + reporter_.line_text(lane.site);
  } else if (warp.waiting >> number & 1) {
    where = std::string("which is in ") + name_of(lane.op) + " of another place or mask, " +
            reporter_.line_text(lane.site);
  }
  reporter_.add(FindingKind::DivergentWarp, thread.site,
                reporter_.thread_text(thread.id) + " is in " + name_of(thread.op) +
                    " whose mask names lane " + std::to_string(number) + ", " + where);
  is_cut_off_ = true;
}

// Joins the warp's meeting. Returns whether all named lanes are there.
bool Launch::join_meeting(Thread& thread) {
  Warp& warp = blocks_.warp_of(thread);
  const std::uint32_t lane = thread.rank % kWarpLanes;
  if (warp.waiting == 0) {
    warp.first_waiting = lane;
    warp.is_uniform = true;
  } else if (warp.is_uniform) {
    warp.is_uniform = is_same(blocks_.lane_of(thread, warp.first_waiting), thread);
  }
  warp.waiting |= 1u << lane;
  thread.waits = Wait::Warp;
  if ((thread.mask & ~warp.waiting) != 0) return false;
  if (warp.is_uniform) return true;
  for (std::uint32_t lanes = thread.mask; lanes != 0; lanes &= lanes - 1) {
    const auto number = static_cast<std::uint32_t>(std::countr_zero(lanes));
    if (!is_same(blocks_.lane_of(thread, number), thread)) return false;
  }
  return true;
}

// Completes an operation when all lanes of the mask have come.
void Launch::complete_warp(Thread& thread) {
  Warp& warp = blocks_.warp_of(thread);
  const std::uint64_t all = is_vote(thread.op) ? voted(thread) : 0;
  for (std::uint32_t lanes = thread.mask; lanes != 0; lanes &= lanes - 1) {
    Thread& lane = blocks_.lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    lane.result = all;
    if (thread.op == WarpOp::Shuffle) lane.result = shuffled(lane);
    if (thread.op == WarpOp::MatchAny) lane.result = matching(lane);
    lane.waits = Wait::None;
  }
  const std::uint32_t own = 1u << (thread.rank % kWarpLanes);
  blocks_.set_ready(thread, thread.mask & ~own);
  // From here on, waiting lanes of other masks are checked one by one.
  warp.waiting &= ~thread.mask;
  if (warp.waiting != 0) {
    warp.first_waiting = static_cast<std::uint32_t>(std::countr_zero(warp.waiting));
    warp.is_uniform = false;
  }
  if (thread.op == WarpOp::Sync) {
    order_.order_warp(thread, thread.mask);
    check_clock(thread);
  }
  make_progress();
}

std::uint64_t Launch::shuffled(const Thread& thread) {
  if ((thread.mask >> thread.source & 1) != 0) return blocks_.lane_of(thread, thread.source).value;
  if (is_cut_off_) return 0;
  reporter_.add(FindingKind::DivergentWarp, thread.site,
                reporter_.thread_text(thread.id) + " reads lane " + std::to_string(thread.source) +
                    " in a shuffle whose mask leaves that lane out");
  is_cut_off_ = true;
  return 0;
}

// The lanes with the same value as this one.
std::uint32_t Launch::matching(const Thread& thread) {
  std::uint32_t equal = 0;
  for (std::uint32_t lanes = thread.mask; lanes != 0; lanes &= lanes - 1) {
    const auto number = static_cast<std::uint32_t>(std::countr_zero(lanes));
    equal |= (blocks_.lane_of(thread, number).value == thread.value ? 1u : 0u) << number;
  }
  return equal;
}

// The result that is the same for all lanes.
std::uint64_t Launch::voted(const Thread& thread) {
  if (thread.op == WarpOp::MatchAll) {
    return matching(thread) == thread.mask ? thread.mask : 0;
  }
  std::uint32_t nonzero = 0;
  for (std::uint32_t lanes = thread.mask; lanes != 0; lanes &= lanes - 1) {
    const auto number = static_cast<std::uint32_t>(std::countr_zero(lanes));
    nonzero |= (blocks_.lane_of(thread, number).value != 0 ? 1u : 0u) << number;
  }
  if (thread.op == WarpOp::Ballot) return nonzero;
  if (thread.op == WarpOp::Any) return nonzero != 0 ? 1 : 0;
  return nonzero == thread.mask ? 1 : 0;
}

}  // namespace cinch::emulator
