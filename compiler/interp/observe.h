// Runs a function and shows the values that have names in the program.
#pragma once

#include <functional>

#include "compiler/interp/interp.h"

namespace cinch::interp {

/// Gets each value that has a name, in the order in which they are computed: one in a loop several
/// times, one in a branch that is not taken never.
using Observer = std::function<void(const ir::Value& value, const Array& array)>;

/// As `run`, of one rank. A gradient that is not finite shows nothing.
rt::Result<Outputs> run_observed(const ir::Program& program, ir::FunctionKind kind,
                                 const Inputs& inputs, const Observer& observer);

}  // namespace cinch::interp
