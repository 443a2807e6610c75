// Knowledge: which accesses of other blocks' threads (or of lanes that a partial mask named) a
// thread knows to lie behind it. Passed on by release and acquire; immutable, shared.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/emulator/races/shadow.h"

namespace cinch::emulator {

inline constexpr std::uint32_t kWarpLanes = 32;

struct Knowledge {
  /// By warp of the grid: accesses of its lanes with a clock below this. Missing ones are 0.
  std::vector<std::uint32_t> warps;
  /// Threads of which more is known, ascending by thread: (thread, clock).
  std::vector<std::pair<std::uint32_t, std::uint32_t>> threads;

  bool covers(std::uint32_t thread, std::uint32_t clock) const;
  void add_warp(std::uint32_t warp, std::uint32_t clock);
  void add_thread(std::uint32_t thread, std::uint32_t clock);
  void add(const Knowledge& other);
};

/// Null for nothing.
using KnowledgePtr = std::shared_ptr<const Knowledge>;
KnowledgePtr joined(const KnowledgePtr& a, const KnowledgePtr& b);

}  // namespace cinch::emulator
