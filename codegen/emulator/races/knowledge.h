// Knowledge: the accesses of other blocks' threads (or of lanes in a partial mask) that a thread
// knows to have come before. Release and acquire pass it on; it is immutable and shared.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/emulator/races/shadow.h"

namespace cinch::emulator {

inline constexpr std::uint32_t kWarpLanes = 32;

struct Knowledge {
  /// By warp of the grid: its lanes' accesses with a lower clock are known. Missing entries are 0.
  std::vector<std::uint32_t> warps;
  /// Threads of which more is known, ascending: (thread, clock).
  std::vector<std::pair<std::uint32_t, std::uint32_t>> threads;

  bool covers(std::uint32_t thread, std::uint32_t clock) const;
  void add_warp(std::uint32_t warp, std::uint32_t clock);
  void add_thread(std::uint32_t thread, std::uint32_t clock);
  void add(const Knowledge& other);
};

/// Null: nothing is known.
using KnowledgePtr = std::shared_ptr<const Knowledge>;
KnowledgePtr joined(const KnowledgePtr& a, const KnowledgePtr& b);

}  // namespace cinch::emulator
