// Decides which operators become one kernel, and makes the kernel IR of each.
#pragma once
#include "codegen/kir/kir.h"
#include "codegen/passes/run.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/fusion_report.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

struct KernelizeOptions {
  StateUpdate states = StateUpdate::SecondBuffer;
  // Counts fusion steps (a sink that takes a value on chip, joins a kernel, waits for its reader,
  // works in place; a value that is stored instead of recomputed) and steps of passes over kernels.
  // Null: no limit.
  rt::StepLimit* steps = nullptr;
  // Receives the reasons that `cinch explain --fusion` prints.
  std::vector<SweepsApart>* apart = nullptr;
};

// Makes kernels, buffers and steps for every entry of a verified program (encode, decode,
// decode-add, finish, state initial values). See plan_region.h (sinks, levels, fusion) and
// kernel_emitter.h (pulls). Throws InternalError{Limitation} for bodies that have no kernels yet
// (sync).
kir::KernelProgram kernelize(const ir::Program& program, const KernelizeOptions& options = {});

}  // namespace cinch::codegen
