// Runs kernel IR directly, slowly and without a compiler: each instruction over all elements of a
// group before the next one, and groups without an order in a random order. Errors of the planner
// of kernels show here as they would in compiled kernels, in a hundredth of the time; errors of
// emitters do not.
#pragma once
#include <cstdint>
#include <memory>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"
#include "runtime/session/loaded_program.h"

namespace cinch::testing {

/// The program with the machine instead of compiled kernels; `kernels` outlives its calls. Only one
/// such program runs at a time, on one thread: a later load makes earlier ones unusable.
rt::Result<std::shared_ptr<const rt::LoadedProgram>> load_on_machine(
    const kir::KernelProgram& kernels, std::uint64_t order_seed);

}  // namespace cinch::testing
