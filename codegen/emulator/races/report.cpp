// Findings as texts for people.
#include "codegen/emulator/races/report.h"

#include <algorithm>
#include <map>

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
  switch (kind) {
    case FindingKind::OutOfBounds:
      return "out of bounds";
    case FindingKind::UseAfterFree:
      return "use after free";
    case FindingKind::Misaligned:
      return "misaligned access";
    case FindingKind::Uninitialised:
      return "uninitialised read";
    case FindingKind::Race:
      return "race";
    case FindingKind::DivergentBarrier:
      return "divergent barrier";
    case FindingKind::DivergentWarp:
      return "divergent warp";
    case FindingKind::Hang:
      return "hang";
    case FindingKind::Trap:
      break;
  }
  return "trap";
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

}  // namespace cinch::emulator
