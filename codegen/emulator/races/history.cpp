// Bodies of history.h, and how atomic loads and writes use histories.
#include "codegen/emulator/races/history.h"

#include <algorithm>
#include <cstring>

#include "codegen/emulator/races/order.h"

namespace cinch::emulator {

void History::add(Held now) {
  held_.push_back(std::move(now));
  if (held_.size() <= kMostHeld) return;
  held_.erase(held_.begin());
  ++oldest_;
  std::erase_if(seen_, [&](const Seen& seen) { return seen.number <= oldest_; });
}

const History::Held& History::see(std::uint64_t age, const Access& load, std::uint64_t time) {
  const std::uint64_t number = oldest_ + held_.size() - 1 - age;
  // Of a thread's loads that are ordered in the same way, only the last one matters.
  const auto before = std::ranges::find_if(seen_, [&](const Seen& seen) {
    return seen.load.thread() == load.thread() && seen.load.clock() == load.clock();
  });
  if (before != seen_.end()) {
    *before = {load, time, number};
  } else {
    seen_.push_back({load, time, number});
  }
  if (seen_.size() > kMostSeen) {
    // It is forgotten whom this load concerns, so it concerns everybody.
    const std::uint64_t bound = seen_.front().number;
    seen_.erase(seen_.begin());
    while (oldest_ < bound) {
      held_.erase(held_.begin());
      ++oldest_;
    }
    std::erase_if(seen_, [&](const Seen& seen) { return seen.number <= oldest_; });
  }
  return held_[std::max(number, oldest_) - oldest_];
}

// Does the current thread know that the access came before? Besides ordered accesses: two fences
// have an order, so an access before the first is known after the second. Here a fence counts for
// its whole block, which is more than the language guarantees.
bool AccessOrder::is_behind(const Access& access, std::uint64_t time) const {
  if (is_known(access)) return true;
  if (time > blocks_.slots[blocks_.current->slot].fence_time) return false;
  const auto fenced = last_fences_.find(access.thread() >> blocks_.block_shift);
  return fenced != last_fences_.end() && access.clock() < fenced->second;
}

History* AccessOrder::history_of(const void* at, std::uint32_t size, bool makes) {
  const std::uint64_t offset = arena_.offset_of(at);
  if (offset >= arena_.shared_begin()) return nullptr;
  const auto found = histories_.find(at);
  if (found == histories_.end() && !makes) return nullptr;
  const Shadow::Page& page = shadow_.page(offset, size, generation_);
  History::Held now;
  now.write = page.cells[offset % Shadow::kPageBytes >> page.shift].write;
  std::memcpy(&now.value, at, size);
  if (found != histories_.end() && found->second.is_of(size, now)) return &found->second;
  now.time = atomic_time_;
  now.release = release_at(at);
  return &histories_.insert_or_assign(at, History(size, std::move(now))).first->second;
}

std::uint64_t AccessOrder::load_held(History& history, std::uint32_t site) {
  const std::uint64_t visible = history.num_visible(
      [this](const Access& access, std::uint64_t time) { return is_behind(access, time); });
  std::uint64_t age = 0;
  if (visible > 1 && (random_.next() & 1) != 0) age = random_.below(visible);
  const Access own(blocks_.current->id, blocks_.current->clock, site, true);
  const History::Held& held = history.see(age, own, atomic_time_);
  blocks_.current->pending = joined(blocks_.current->pending, held.release);
  return held.value;
}

void AccessOrder::add_held(History& history, const void* at, std::uint32_t site) {
  History::Held now;
  now.write = Access(blocks_.current->id, blocks_.current->clock, site, true);
  std::memcpy(&now.value, at, history.size());
  now.time = atomic_time_;
  now.release = release_at(at);
  history.add(std::move(now));
}

}  // namespace cinch::emulator
