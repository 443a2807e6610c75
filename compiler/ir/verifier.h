// Checks the rules that every program must keep; the manager runs this after every pass. It checks
// structure (ids, arity, regions that end in a yield, values defined before use), types and shapes
// of every op, ranges of attributes, and that results are complete.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/ir.h"

namespace cinch::ir {

/// The first fault, or nothing: "map.add: operands differ in type (f32, i32)".
std::optional<std::string> find_fault(const Program& program);
/// Throws InternalError{Bug} with `stage` and the printed program if there is a fault.
void verify(const Program& program, const std::string& stage = "verify");

}  // namespace cinch::ir
