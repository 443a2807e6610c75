// Decides which operators become one kernel, and makes the kernel IR of each.
#pragma once
#include <string>
#include <vector>

#include "codegen/kir/kir.h"
#include "codegen/passes/passes.h"
#include "compiler/ir/ir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

// What fusion did and what it could not do, for `cinch explain --fusion`.

/// The domain of a sweep, in the program's pool: elements, or rows of `cols` columns.
struct SweepDomain {
  HostExprId rows, cols;  // cols: invalid if the domain has no rows
};

/// Two neighbouring sweeps of an entry, and why they are not fused.
struct SweepsApart {
  std::string first, second;  // symbols of their kernels
  std::string why;            // "`w` is read before `a` changes"
  ir::Span at;                // of the value that the second sweep waits for, if there is one
  /// The domains of both, if they are the reason.
  std::vector<SweepDomain> domains = {};
};

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
