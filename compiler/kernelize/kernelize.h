// The door of kernelize: which operators become one kernel, and the kernel IR of each.
#pragma once
#include "codegen/kir/kir.h"
#include "codegen/passes/state_update.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/fusion_report.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

struct KernelizeOptions {
  StateUpdate states = StateUpdate::SecondBuffer;
  // Counts fusion steps (a sink that takes a value on chip, joins a kernel, waits for its reader,
  // works in place; a value that is stored instead of computed again) and what passes over kernels
  // do. Null: no limit.
  rt::StepLimit* steps = nullptr;
  // Takes what `cinch explain --fusion` says.
  std::vector<SweepsApart>* apart = nullptr;
};

// Kernels, buffers and steps for every entry of a verified program (encode, decode, decode-add,
// finish, state initial values). How: plan_region.h (sinks, levels, fusion), kernel_emitter.h
// (pulls). Throws InternalError{Limitation} for what has no kernel yet (sync).
kir::KernelProgram kernelize(const ir::Program& program, const KernelizeOptions& options = {});

}  // namespace cinch::codegen
