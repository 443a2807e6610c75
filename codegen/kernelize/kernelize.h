// The door of kernelize: which operators become one kernel, and the kernel IR of each.
#pragma once
#include "codegen/kernelize/state_update.h"
#include "codegen/kir/kir.h"
#include "compiler/ir/ir.h"

namespace cinch::codegen {

// Kernels, buffers and steps for every entry of a verified program (encode, decode, decode-add,
// finish, state initial values). How: plan_region.h (sinks, levels, fusion), kernel_emitter.h
// (pulls). Throws InternalError{Limitation} for what has no kernel yet (sync).
kir::KernelProgram kernelize(const ir::Program& program,
                             StateUpdate states = StateUpdate::SecondBuffer);

}  // namespace cinch::codegen
