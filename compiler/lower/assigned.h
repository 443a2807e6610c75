// Finds what a part of the checked tree changes: variables from outside, states and draw counters.
// Control flow becomes SSA by passing exactly these through if_else results and loop-carried
// values.
#pragma once
#include <cstdint>
#include <vector>

#include "dsl/sema/checked.h"

namespace cinch::lower {

struct Draw {
  sema::ExprId expr;
  bool in_loop = false;  // in a loop inside the searched part
};

struct Assigned {
  std::vector<sema::VarId> vars;      // ascending; declared outside
  std::vector<std::uint32_t> states;  // ascending
  std::vector<Draw> draws;            // random operators
};

// For the expressions `roots` together; invalid ids are skipped.
Assigned find_assigned(const sema::CheckedProgram& program, const std::vector<sema::ExprId>& roots);

// True if `root` or an expression below it is an array or a lambda.
bool touches_arrays(const sema::CheckedProgram& program, sema::ExprId root);

// Numbers draws (docs/language_bits.md). Every compressor instance has one sequence of numbers for
// shared draws and one for the others. A call site's number counts the sites before it, each once;
// the additional draws of loops are added at run time.

// The number space of a draw; sites of one space differ in the low half only.
inline std::uint32_t draw_space(const sema::Expr& draw) {
  const bool is_owners = (draw.site & 0xe000) == sema::kOwnerSites;
  return (draw.site >> 16) << 2 | (is_owners ? 2 : 0) | (draw.shared ? 1 : 0);
}

}  // namespace cinch::lower
