// Finds what a part of the checked tree changes: variables from outside and states; and its draws.
// Control flow becomes SSA by passing exactly these through if_else results and loop-carried
// values.
#pragma once
#include <cstdint>
#include <vector>

#include "dsl/sema/checked.h"

namespace cinch::lower {

// A random operator, and the loops inside the searched part around it, outermost first.
struct Draw {
  struct Loop {
    sema::StmtId stmt;
    bool is_condition = false;  // the draw is in the condition of a `while`
  };
  sema::ExprId expr;
  std::vector<Loop> loops;
};

struct Assigned {
  std::vector<sema::VarId> vars;      // ascending; declared outside
  std::vector<std::uint32_t> states;  // ascending
  std::vector<Draw> draws;
};

// For the expressions `roots` together; invalid ids are skipped.
Assigned find_assigned(const sema::CheckedProgram& program, const std::vector<sema::ExprId>& roots);

// True if `root` or an expression below it is an array or a lambda.
bool touches_arrays(const sema::CheckedProgram& program, sema::ExprId root);

}  // namespace cinch::lower
