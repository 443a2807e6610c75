// How fast this machine encodes and decodes: short runs of the programs themselves.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/planner/plan_cost.h"
#include "runtime/session/loaded_program.h"
#include "runtime/session/tensor_view.h"

namespace cinch::rt {

struct SpeedOptions {
  std::uint32_t world = 1;
  std::uint32_t threads = 1;  // of a rank
  /// So many measure at once, as ranks of one machine compute at once.
  std::uint32_t copies = 1;
  double seconds = 0.5;  // about
  std::uint64_t step = 0;
};

/// Pieces of several sizes are taken from all over the gradient, up to a limit, so that they are as
/// far from the caches as in a step; `gradient` has as many elements as rows and columns. Of
/// matrix programs and those whose tensors may not be cut only the whole is measured. Errors: those
/// of sessions.
Result<CodecSpeed> measure_codec(const std::shared_ptr<const LoadedProgram>& program, bool can_cut,
                                 ConstTensorView gradient, std::int64_t rows, std::int64_t cols,
                                 const SpeedOptions& options);

/// Of tensors that travel as plain f32; sets `dense` and `clear`. Errors: OutOfMemory.
Status measure_dense(std::int64_t elems, const SpeedOptions& options, CostInputs& to);

}  // namespace cinch::rt
