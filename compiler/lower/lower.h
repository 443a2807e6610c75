// Lowering: the checked tree of one compressor to IR. Assumes what sema guarantees (types final,
// names resolved, silent conversions explicit); gives one ir::Function per body, with mutable
// variables and states in SSA form, lambdas over elements as `map`s, and every check that sema
// could not prove as a check op in the region where it belongs.
#pragma once
#include "compiler/ir/ir.h"
#include "dsl/sema/checked.h"
#include "dsl/source/source.h"

namespace cinch::lower {

// The whole program: its bodies, the initial values of its states, its constant tables. Host
// expressions keep their ids where they had one; lowering may add some. Throws InternalError (Bug:
// a tree that sema should have refused; Limitation: an operator on arrays inside a lambda that has
// no lifted form yet, named in the message). With `sources`, what a failing check says starts with
// file (its last part, so that code is the same wherever a file lies), line and column.
ir::Program lower(const sema::CheckedProgram& checked, const dsl::SourceSet* sources = nullptr);

}  // namespace cinch::lower
