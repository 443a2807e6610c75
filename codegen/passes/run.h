// Runs all passes over kernels in order, each followed by the checker of buffer contents.
#pragma once
#include <cstdint>

#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Where the new values of states are written.
enum class StateUpdate : std::uint8_t {
  SecondBuffer,  // to a second buffer; the runtime swaps the two when the call has succeeded
  InPlace,       // over the present values, wherever that is safe
};

/// Throws InternalError if a pass leaves a plan that would read data that are not there.
void run_kernel_passes(kir::KernelProgram& program, StateUpdate states, rt::StepLimit& steps);

}  // namespace cinch::codegen
