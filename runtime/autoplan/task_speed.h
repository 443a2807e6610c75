// Measures how fast a rank encodes, decodes and adds, on CPUs or a GPU: it times the tasks of short
// plans of one rank.
#pragma once
#include <cstdint>

#include "runtime/planner/plan_cost.h"
#include "runtime/sync/sync_session.h"

namespace cinch::rt {

struct SpeedOptions {
  /// The session as the rank will open it, without plan. Its programs are needed even if a device
  /// computes.
  SyncOptions session;
  /// How many measure at once, since ranks of one machine compute at once.
  std::uint32_t copies = 1;
  double seconds = 0.5;  // about
  std::uint64_t step = 0;
};

/// Measures one codec of the session's programs. Takes pieces of several sizes from all over the
/// gradient, up to a limit, so that they are as far from the caches as in a step. `gradient` has
/// rows * cols elements, in host memory. For matrix programs and those whose tensors may not be
/// cut, only the whole is measured. Errors: those of SyncSession.
Result<CodecSpeed> measure_codec(std::uint32_t codec, ConstTensorView gradient, std::int64_t rows,
                                 std::int64_t cols, const SpeedOptions& options);

/// Measures tensors that are sent as plain f32; sets `dense` and `clear`. Errors: those of
/// SyncSession.
Status measure_dense(std::int64_t elems, const SpeedOptions& options, CostInputs& to);

}  // namespace cinch::rt
