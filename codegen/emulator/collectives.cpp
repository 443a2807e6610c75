// Where threads meet: barriers of a block, and operations of a warp. Lanes must agree on the
// operation, its place in the text, and the mask.
#include <bit>
#include <cmath>
#include <new>

#include "codegen/emulator/launch.h"
#include "runtime/core/ids.h"

namespace cinch::emulator {
namespace {

const char* name_of(WarpOp op) {
  static constexpr const char* kNames[] = {"__syncwarp", "a shuffle", "a vote", "a vote",
                                           "a vote",     "a match",   "a match"};
  return name_in(kNames, op, "a match");
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
  const bool is_vote = thread.op == WarpOp::Ballot || thread.op == WarpOp::Any ||
                       thread.op == WarpOp::All || thread.op == WarpOp::MatchAll;
  const std::uint64_t all = is_vote ? voted(thread) : 0;
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

// The functions that modules call during a launch. They run on the fibers of threads: exceptions
// must not pass frames of emulated code.

Launch* g_launch = nullptr;

namespace {

template <class F>
auto guarded(F function) {
  try {
    return function(*g_launch);
  } catch (const std::bad_alloc&) {
    static_cast<void>(0);  // leaves the handler first: a fiber may not stay in it
  }
  g_launch->give_up();
}

void read(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.access(at, size, align, site, false, false); });
}
void write(void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.access(at, size, align, site, false, true); });
}
void strong_read(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.strong_access(at, size, align, site, false); });
}
void strong_write(void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.strong_access(at, size, align, site, true); });
}
void out_of_fuel(std::uint32_t site) {
  guarded([&](Launch& launch) { launch.out_of_fuel(site); });
}
std::uint32_t sync_block(std::uint32_t op, std::uint32_t value, std::uint32_t site) {
  return guarded(
      [&](Launch& launch) { return launch.sync_block(static_cast<BlockOp>(op), value, site); });
}
void sync_warp(std::uint32_t mask, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.meet_warp(WarpOp::Sync, mask, 0, 0, site); });
}
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source,
                      std::uint32_t site) {
  return guarded(
      [&](Launch& launch) { return launch.meet_warp(WarpOp::Shuffle, mask, value, source, site); });
}
std::uint32_t vote(std::uint32_t op, std::uint32_t mask, std::uint32_t value, std::uint32_t site) {
  constexpr WarpOp kOps[] = {WarpOp::Ballot, WarpOp::Any, WarpOp::All};
  return static_cast<std::uint32_t>(
      guarded([&](Launch& launch) { return launch.meet_warp(kOps[op], mask, value, 0, site); }));
}
std::uint32_t match(std::uint32_t op, std::uint32_t mask, std::uint64_t value, std::uint32_t site) {
  const WarpOp warp_op =
      static_cast<MatchOp>(op) == MatchOp::Any ? WarpOp::MatchAny : WarpOp::MatchAll;
  return static_cast<std::uint32_t>(
      guarded([&](Launch& launch) { return launch.meet_warp(warp_op, mask, value, 0, site); }));
}
std::uint32_t active_mask(std::uint32_t) {
  return g_launch->own_lane_bit();
}
std::uint64_t atomic(std::uint32_t op, void* at, std::uint32_t size, std::uint64_t value,
                     std::uint64_t compare, std::uint32_t site) {
  return guarded([&](Launch& launch) {
    return launch.atomic(static_cast<AtomicOp>(op), at, size, value, compare, site);
  });
}
void fence(std::uint32_t) {
  guarded([&](Launch& launch) { launch.fence(); });
}
void trap(std::uint32_t site) {
  guarded([&](Launch& launch) { launch.trap(site); });
}

double round(std::uint32_t mode, double x) {
  switch (static_cast<RoundMode>(mode)) {
    case RoundMode::Nearest:
      return std::nearbyint(x);
    case RoundMode::Floor:
      return std::floor(x);
    case RoundMode::Ceil:
      return std::ceil(x);
    case RoundMode::Trunc:
      break;
  }
  return std::trunc(x);
}
float fma32(float a, float b, float c) {
  return std::fma(a, b, c);
}
double fma64(double a, double b, double c) {
  return std::fma(a, b, c);
}

}  // namespace

Hooks make_hooks(bool checks) {
  Hooks hooks;
#define CINCH_HOOK(name, result, parameters) hooks.name = name;
#include "codegen/emulator/hooks.def"
#undef CINCH_HOOK
  if (!checks) {
    hooks.read = [](const void*, std::uint64_t, std::uint64_t, std::uint32_t) {};
    hooks.write = [](void*, std::uint64_t, std::uint64_t, std::uint32_t) {};
  }
  return hooks;
}

}  // namespace cinch::emulator
