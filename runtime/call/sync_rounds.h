// Which collectives a `sync` makes, known before it runs: those that no value decides about, of
// sizes that follow from the tensor and the number of ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// One collective, as every rank makes it.
struct SyncRound {
  CollectiveInfo collective;
  DType dtype = kF32;
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // input and output of CollectiveCall
};

/// No collective stands in a branch or in a `while`, or is routed (is_routed); how often loops run,
/// and all sizes, depend on neither parameters nor the step.
bool has_fixed_rounds(const ProgramImage& image);

/// Of a program that has fixed rounds: in order, loops unrolled. Errors: those of formulas.
Result<std::vector<SyncRound>> sync_rounds(const ProgramImage& image, const HostEnv& env);

}  // namespace cinch::rt
