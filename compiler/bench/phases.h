// Steps at which a program does other work than before: those at which a condition on the step's
// number changes, such as the end of a warm-up or every tenth step.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::bench {

/// The first step of each phase of a function, from 1 on, ascending; at most four. `env` has the
/// sizes and parameters; its step does not matter. A condition counts if the host knows it for a
/// step: one that is made of the step, sizes, parameters and constants.
std::vector<std::uint64_t> first_steps_of_phases(const ir::Program& program,
                                                 ir::FunctionKind function, HostEnv env);

}  // namespace cinch::bench
