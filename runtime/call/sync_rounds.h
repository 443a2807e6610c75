// Lists the collectives of a `sync` before it runs, if no value decides about them and their sizes
// follow from the tensor and the number of ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// One collective, the same on every rank.
struct SyncRound {
  CollectiveInfo collective;
  DType dtype = kF32;
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // input and output of CollectiveCall
};

/// True if no collective is in a branch or in a `while` or is routed (is_routed), and if neither
/// the number of rounds of loops nor any size depends on parameters or the step.
bool has_fixed_rounds(const ProgramImage& image);

/// The collectives in order, loops unrolled. Only for programs with fixed rounds. Errors: those of
/// formulas.
Result<std::vector<SyncRound>> sync_rounds(const ProgramImage& image, const HostEnv& env);

}  // namespace cinch::rt
