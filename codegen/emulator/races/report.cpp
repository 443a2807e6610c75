// Findings as texts for people, and the histories of words.
#include <algorithm>
#include <cstring>

#include "codegen/emulator/races/order.h"
#include "runtime/core/ids.h"

namespace cinch::emulator {
namespace {

std::string dim_text(const Dim& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
         ")";
}

std::string bytes_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

}  // namespace

const char* finding_kind_name(FindingKind kind) {
  static constexpr const char* kNames[] = {
      "out of bounds",      "use after free", "misaligned access",
      "uninitialised read", "race",           "divergent barrier",
      "divergent warp",     "hang",           "trap"};
  return name_in(kNames, kind, "trap");
}

int Reporter::line_of(std::uint32_t site) const {
  const ModuleInfo& info = request_.module->info();
  return site < info.num_sites ? static_cast<int>(info.sites[site].line) : 0;
}

std::string Reporter::line_text(std::uint32_t site) const {
  const ModuleInfo& info = request_.module->info();
  if (site >= info.num_sites || info.sites[site].line == 0) return "at an unknown line";
  const Site& at = info.sites[site];
  std::string text = "line " + std::to_string(at.line);
  if (at.kernel_line != at.line) text += ", from line " + std::to_string(at.kernel_line);
  return text + ": " + request_.module->line(at.line);
}

bool Reporter::is_new(FindingKind kind, std::uint32_t site) const {
  return !reported_.contains({kind, line_of(site)});
}

void Reporter::add(FindingKind kind, std::uint32_t site, const std::string& what) {
  reported_.insert({kind, line_of(site)});
  findings_.push_back({kind, request_.kernel->name, line_of(site),
                       std::string(finding_kind_name(kind)) + " in " + request_.kernel->name +
                           ", " + line_text(site) + "\n  " + what});
}

std::string Reporter::thread_text(std::uint32_t id) const {
  const std::uint32_t block = id >> blocks_.block_shift;
  const std::uint32_t rank = id & ((1u << blocks_.block_shift) - 1);
  return "thread " + dim_text(index_in(rank, request_.block)) + " of block " +
         dim_text(index_in(block, request_.grid));
}

std::string Reporter::place_text(std::uint64_t offset, std::uint64_t size) const {
  if (offset >= arena_.shared_begin()) return shared_text(offset);
  const std::optional<Allocation> allocation = arena_.nearest(offset);
  if (!allocation) return bytes_text(offset) + " into the device's memory, before any allocation";
  const std::string what = std::string(allocation->is_freed ? "a freed" : "an") +
                           " allocation of " + bytes_text(allocation->size_bytes);
  const std::uint64_t at = offset - allocation->offset;
  if (at + size <= allocation->size_bytes) return "byte " + std::to_string(at) + " of " + what;
  // The access may have been meant for the next allocation.
  const std::optional<Allocation> next = arena_.next(offset);
  if (next && next->offset - offset < at - std::min(at, allocation->size_bytes)) {
    return bytes_text(next->offset - offset) + " before an allocation of " +
           bytes_text(next->size_bytes);
  }
  if (at < allocation->size_bytes) return "byte " + std::to_string(at) + " of " + what;
  return bytes_text(at - allocation->size_bytes) + " behind the end of " + what;
}

std::string Reporter::shared_text(std::uint64_t offset) const {
  const std::uint64_t at = (offset - arena_.shared_begin()) % blocks_.slot_bytes;
  const std::uint64_t slot = (offset - arena_.shared_begin()) / blocks_.slot_bytes;
  if (slot != blocks_.current->slot) return "shared memory that is not this block's";
  const KernelEntry& kernel = *request_.kernel;
  std::string nearest = "shared memory that the kernel has not";
  for (std::uint64_t i = 0; i < kernel.num_shared; ++i) {
    const SharedArray& array = kernel.shared[i];
    if (at >= array.offset) {
      nearest = "byte " + std::to_string(at - array.offset) + " of a shared array of " +
                bytes_text(array.size_bytes);
    }
  }
  if (kernel.dynamic_offset != kNoDynamicShared && at >= kernel.dynamic_offset) {
    nearest = "byte " + std::to_string(at - kernel.dynamic_offset) + " of " +
              bytes_text(request_.shared_bytes) + " of dynamic shared memory";
  }
  return nearest;
}

void Reporter::add_outside(const void* at, std::uint64_t size, std::uint32_t site, bool is_write) {
  const std::uint64_t offset = arena_.offset_of(at);
  const std::string does = thread_text(blocks_.current->id) + (is_write ? " writes " : " reads ") +
                           bytes_text(size) + " at ";
  if (offset >= arena_.size_bytes()) {
    const std::string where =
        at == nullptr ? "a null pointer" : "an address that is not the device's";
    add(FindingKind::OutOfBounds, site, does + where);
    return;
  }
  const bool is_freed = (arena_.state()[offset] & kFreed) != 0;
  add(is_freed ? FindingKind::UseAfterFree : FindingKind::OutOfBounds, site,
      does + place_text(offset, size));
}

void Reporter::add_race(const Access& before, const Access& now, std::uint64_t offset,
                        const char* before_did, const char* now_does) {
  if (!is_new(FindingKind::Race, now.site())) return;
  add(FindingKind::Race, now.site(),
      thread_text(now.thread()) + " " + now_does + " " + place_text(offset, 1) + ", which " +
          thread_text(before.thread()) + " " + before_did + " in " + line_text(before.site()) +
          "; nothing orders the two");
}

void Reporter::add_stuck() {
  std::map<std::pair<bool, std::uint32_t>, std::uint64_t> places;  // (waits in a meeting, site)
  for (const Thread& thread : blocks_.threads) {
    const bool exists = thread.fiber.context != nullptr;
    if (exists && thread.waits != Wait::Done) ++places[{thread.waits != Wait::None, thread.site}];
  }
  std::string what;
  std::uint32_t site = 0;
  std::uint64_t most = 0;
  for (const auto& [place, count] : places) {
    if (!what.empty()) what += "\n  ";
    what += std::to_string(count) +
            (place.first ? " threads wait in " : " threads look again at ") +
            line_text(place.second);
    // Threads that poll are more telling than those that only wait for them.
    const std::uint64_t weight = place.first ? count : count << 32;
    if (weight > most) {
      most = weight;
      site = place.second;
    }
  }
  if (blocks_.next_block < blocks_.num_blocks) {
    what += "\n  " + std::to_string(blocks_.num_blocks - blocks_.next_block) + " of " +
            std::to_string(blocks_.num_blocks) +
            " blocks have not begun: those that run must end first";
  }
  add(FindingKind::Hang, site, what);
}

std::string Reporter::all_findings() const {
  std::string all;
  for (const Finding& finding : findings_) {
    if (!all.empty()) all += "\n";
    all += finding.text;
  }
  return all;
}

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
