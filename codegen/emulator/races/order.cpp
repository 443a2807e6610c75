// Which accesses are known to come before which: floors of blocks and warps for barriers and
// __syncwarp, knowledge for fences with strong accesses.
#include <algorithm>
#include <bit>

#include "codegen/emulator/races/order.h"

namespace cinch::emulator {
bool AccessOrder::is_known(const Access& access) const {
  const Thread& me = *blocks_.current;
  const std::uint32_t thread = access.thread(), clock = access.clock();
  if (thread == me.id) return true;
  if (thread >> blocks_.block_shift == me.id >> blocks_.block_shift) {
    if (clock < blocks_.slots[me.slot].floor) return true;
    const Warp& warp = blocks_.warps[me.slot * blocks_.block_warps + me.rank / kWarpLanes];
    if (thread / kWarpLanes == me.id / kWarpLanes && clock < warp.floor) return true;
  }
  return me.knowledge && me.knowledge->covers(thread, clock);
}

// Afterwards all threads of the block know what any of them knew or did.
void AccessOrder::order_block(Slot& slot, Thread* threads) {
  std::uint32_t latest = 0;
  KnowledgePtr knowledge;
  for (std::uint32_t i = 0; i < blocks_.block_threads; ++i) {
    latest = std::max(latest, threads[i].clock);
    knowledge = joined(knowledge, threads[i].knowledge);
  }
  for (std::uint32_t i = 0; i < blocks_.block_threads; ++i) {
    threads[i].clock = latest + 1;
    threads[i].knowledge = knowledge;
  }
  slot.floor = latest + 1;
  for (std::uint32_t warp = 0; warp < blocks_.block_warps; ++warp) {
    blocks_.warps[threads[0].slot * blocks_.block_warps + warp].floor = latest + 1;
  }
}

// The same for the lanes of a mask.
void AccessOrder::order_warp(Thread& thread, std::uint32_t mask) {
  Warp& warp = blocks_.warp_of(thread);
  const bool is_whole = (mask & ~warp.done) == (warp.exists & ~warp.done);
  std::uint32_t latest = 0;
  KnowledgePtr knowledge;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const Thread& lane =
        blocks_.lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    latest = std::max(latest, lane.clock);
    knowledge = joined(knowledge, lane.knowledge);
  }
  if (is_whole) {
    warp.floor = latest + 1;
  } else {
    auto more = knowledge ? std::make_shared<Knowledge>(*knowledge) : std::make_shared<Knowledge>();
    for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
      const Thread& lane =
          blocks_.lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
      more->add_thread(lane.id, lane.clock + 1);
    }
    knowledge = std::move(more);
  }
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    Thread& lane = blocks_.lane_of(thread, static_cast<std::uint32_t>(std::countr_zero(lanes)));
    lane.clock = latest + 1;
    lane.knowledge = knowledge;
  }
}

void AccessOrder::fence() {
  Thread& me = *blocks_.current;
  me.knowledge = joined(me.knowledge, me.pending);
  me.pending = nullptr;
  me.fence = {me.clock + 1, blocks_.warp_of(me).floor, blocks_.slots[me.slot].floor, me.knowledge,
              nullptr};
  me.clock += 1;
  if (histories_.empty()) return;
  blocks_.slots[me.slot].fence_time = atomic_time_;
  std::uint32_t& last = last_fences_[me.id >> blocks_.block_shift];
  last = std::max(last, me.clock);
}

const KnowledgePtr& AccessOrder::release_of(Thread& thread) const {
  FenceMark& fence = thread.fence;
  if (fence.release) return fence.release;
  auto release = fence.knowledge ? std::make_shared<Knowledge>(*fence.knowledge)
                                 : std::make_shared<Knowledge>();
  const std::uint32_t first =
      (thread.id >> blocks_.block_shift << blocks_.block_shift) / kWarpLanes;
  for (std::uint32_t warp = 0; warp < blocks_.block_warps; ++warp) {
    release->add_warp(first + warp, fence.block_floor);
  }
  release->add_warp(thread.id / kWarpLanes, fence.warp_floor);
  release->add_thread(thread.id, fence.clock);
  fence.release = std::move(release);
  return fence.release;
}

// The knowledge that a read of the newest value acquires.
KnowledgePtr AccessOrder::release_at(const void* at) const {
  if (releases_.empty()) return nullptr;
  const auto found = releases_.find(at);
  return found == releases_.end() ? nullptr : found->second;
}

void AccessOrder::acquire(const void* at) {
  Thread& me = *blocks_.current;
  me.pending = joined(me.pending, release_at(at));
}

void AccessOrder::release_to(const void* at, bool is_update) {
  Thread& me = *blocks_.current;
  if (me.fence.clock == 0) {
    if (!is_update && !releases_.empty()) releases_.erase(at);
    return;
  }
  const KnowledgePtr& release = release_of(me);
  KnowledgePtr& there = releases_[at];
  there = is_update ? joined(there, release) : release;
}

namespace {

struct ByThread {
  bool operator()(const std::pair<std::uint32_t, std::uint32_t>& a, std::uint32_t thread) const {
    return a.first < thread;
  }
};

}  // namespace

bool Knowledge::covers(std::uint32_t thread, std::uint32_t clock) const {
  const std::uint32_t warp = thread / kWarpLanes;
  if (warp < warps.size() && clock < warps[warp]) return true;
  const auto found = std::lower_bound(threads.begin(), threads.end(), thread, ByThread());
  return found != threads.end() && found->first == thread && clock < found->second;
}

void Knowledge::add_warp(std::uint32_t warp, std::uint32_t clock) {
  if (warp >= warps.size()) warps.resize(warp + 1);
  warps[warp] = std::max(warps[warp], clock);
}

void Knowledge::add_thread(std::uint32_t thread, std::uint32_t clock) {
  const auto at = std::lower_bound(threads.begin(), threads.end(), thread, ByThread());
  if (at != threads.end() && at->first == thread) {
    at->second = std::max(at->second, clock);
  } else {
    threads.insert(at, {thread, clock});
  }
}

void Knowledge::add(const Knowledge& other) {
  if (warps.size() < other.warps.size()) warps.resize(other.warps.size());
  for (std::size_t i = 0; i < other.warps.size(); ++i) {
    warps[i] = std::max(warps[i], other.warps[i]);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
  all.reserve(threads.size() + other.threads.size());
  std::merge(threads.begin(), threads.end(), other.threads.begin(), other.threads.end(),
             std::back_inserter(all));
  threads.clear();
  for (const auto& [thread, clock] : all) {
    const std::uint32_t warp = thread / kWarpLanes;
    if (warp < warps.size() && clock <= warps[warp]) continue;
    if (!threads.empty() && threads.back().first == thread) {
      threads.back().second = clock;  // merged ascending: the larger comes last
    } else {
      threads.emplace_back(thread, clock);
    }
  }
}

KnowledgePtr joined(const KnowledgePtr& a, const KnowledgePtr& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  auto all = std::make_shared<Knowledge>(*a);
  all->add(*b);
  return all;
}

}  // namespace cinch::emulator
