// How fast a rank encodes, decodes and adds, on whatever it computes: short runs of plans of one
// rank, whose tasks are timed.
#pragma once
#include <cstdint>

#include "runtime/planner/plan_cost.h"
#include "runtime/sync/sync_session.h"

namespace cinch::rt {

struct SpeedOptions {
  /// As the rank will open it, without plan. Its programs are looked at, also where a device
  /// computes.
  SyncOptions session;
  /// So many measure at once, as ranks of one machine compute at once.
  std::uint32_t copies = 1;
  double seconds = 0.5;  // about
  std::uint64_t step = 0;
};

/// Of one codec of the session's programs. Pieces of several sizes are taken from all over the
/// gradient, up to a limit, so that they are as far from the caches as in a step; `gradient` has as
/// many elements as rows and columns, in the host's memory. Of matrix programs and those whose
/// tensors may not be cut only the whole is measured. Errors: those of SyncSession.
Result<CodecSpeed> measure_codec(std::uint32_t codec, ConstTensorView gradient, std::int64_t rows,
                                 std::int64_t cols, const SpeedOptions& options);

/// Of tensors that travel as plain f32; sets `dense` and `clear`. Errors: those of SyncSession.
Status measure_dense(std::int64_t elems, const SpeedOptions& options, CostInputs& to);

}  // namespace cinch::rt
