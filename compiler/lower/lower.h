// Lowers the checked tree of one compressor to IR. It relies on sema (types final, names resolved,
// silent conversions explicit). It makes one ir::Function per body, with mutable variables and
// states in SSA form, lambdas over elements as `map`s, and every check that sema could not prove as
// a check op in the region where it belongs.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "dsl/sema/checked.h"
#include "dsl/source/source.h"

namespace cinch::lower {
// Lowers the whole program: its bodies, the initial values of its states, its constant tables. Host
// expressions keep their ids; lowering may add some. With `sources`, messages of failing checks
// begin with file (its last part, so that code is the same wherever a file lies), line and column.
// Throws InternalError (Bug: a tree that sema should have rejected; Limitation: an operator on
// arrays inside a lambda that cannot be lifted yet, named in the message).
ir::Program lower(const sema::CheckedProgram& checked, const dsl::SourceSet* sources = nullptr);

}  // namespace cinch::lower
