// Runs kernel IR as it stands, slowly and with no compiler: each instruction over all elements of a
// group before the next, groups that may run in any order in a random one. What the planner of
// kernels does wrong shows here as it would in compiled kernels, in a hundredth of the time; what
// emitters do wrong does not.
#pragma once
#include <cstdint>
#include <memory>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"
#include "runtime/session/loaded_program.h"

namespace cinch::testing {

/// The program with the machine in place of compiled kernels; `kernels` outlives its calls. One
/// such program runs at a time, on one thread: a later load makes earlier ones unusable.
rt::Result<std::shared_ptr<const rt::LoadedProgram>> load_on_machine(
    const kir::KernelProgram& kernels, std::uint64_t order_seed);

}  // namespace cinch::testing
