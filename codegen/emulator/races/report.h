// Reporter: collects the findings of one launch, and writes them as texts for people.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/emulator/arena.h"
#include "codegen/emulator/blocks.h"
#include "codegen/emulator/gpu.h"
#include "codegen/emulator/races/shadow.h"

namespace cinch::emulator {

class Reporter {
 public:
  Reporter(const LaunchRequest& request, const Arena& arena, const ResidentBlocks& blocks)
      : request_(request), arena_(arena), blocks_(blocks) {}

  std::vector<Finding>& findings() { return findings_; }
  std::string all_findings() const;
  /// Has the line no finding of this kind yet?
  bool is_new(FindingKind kind, std::uint32_t site) const;
  void add(FindingKind kind, std::uint32_t site, const std::string& what);
  /// The current thread's access lies in no allocation.
  void add_outside(const void* at, std::uint64_t size, std::uint32_t site, bool is_write);
  void add_race(const Access& before, const Access& now, std::uint64_t offset,
                const char* before_did, const char* now_does);
  /// Nobody can go on, or all others can only poll for writes.
  void add_stuck();

  // ---- names in texts ----
  std::string thread_text(std::uint32_t id) const;
  std::string place_text(std::uint64_t offset, std::uint64_t size) const;
  std::string line_text(std::uint32_t site) const;

 private:
  std::string shared_text(std::uint64_t offset) const;
  int line_of(std::uint32_t site) const;

  const LaunchRequest& request_;
  const Arena& arena_;
  const ResidentBlocks& blocks_;
  std::vector<Finding> findings_;
  std::set<std::pair<FindingKind, int>> reported_;
};

}  // namespace cinch::emulator
