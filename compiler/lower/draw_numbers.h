// Numbers draws (docs/language_bits.md). A call site's number counts the sites before it in its
// space, each once. What loops add depends on their bounds alone, never on how often they ran, so a
// draw behind them has the same number on every rank and in `decode`.
#pragma once
#include <cstdint>
#include <map>

#include "compiler/lower/assigned.h"

namespace cinch::lower {

// Draws that are numbered together: those of one compressor that are not shared, or the shared ones
// of one call of a method.
struct DrawSpace {
  std::uint32_t method = 0;  // 0: not shared
  std::uint32_t kind = 0;    // the compressor, and whether only `finish` shares the draw
  friend auto operator<=>(const DrawSpace&, const DrawSpace&) = default;
};

DrawSpace draw_space(const sema::Expr& draw);

// The draws of a loop in one space.
struct LoopDraws {
  HostExprId of_round;
  HostExprId beyond_sites;  // the draws of all rounds, less the sites, which later sites count
};

// For the spaces whose numbers the loop's rounds change. A method that is called within the loop
// numbers its shared draws from 0 in every round.
std::map<DrawSpace, LoopDraws> loop_draws(const sema::CheckedProgram& program,
                                          const sema::Stmt& loop, HostExprPool& pool);

}  // namespace cinch::lower
