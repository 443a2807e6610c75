// What is measured on the ranks at hand: how fast a rank encodes, decodes and adds, on CPUs or a
// GPU (by the tasks of short plans of one rank), and how long steps of whole plans take.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

// Compares plans by trial: takes steps of each on its ranks and transport.

struct TrialOptions {
  SyncOptions session;          // each trial sets its plan
  std::uint64_t step = 0;       // the step that trials take, again and again
  double seconds = 1;           // time of all trials, about
  double clearly_slower = 1.3;  // times the fastest so far: slower plans are dropped
};

/// Seconds of a step by each plan: the median of the slowest rank's times, without a session's
/// first step. All ranks call it with the same plans and options and get the same result. Each rank
/// has gradients of its own, by the plans' tensors, in host memory. Leaves no state behind. Errors:
/// those of SyncSession; the transport then takes no more exchanges.
Result<std::vector<double>> try_plans(std::span<const std::shared_ptr<const Plan>> plans,
                                      std::span<const ConstTensorView> gradients,
                                      const TrialOptions& options, Transport& transport);

/// `values` must not be empty. Returns the larger one of two in the middle.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace cinch::rt
