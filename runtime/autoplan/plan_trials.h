// Compares plans by trial: takes steps of each on its ranks and transport.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/sync/sync_session.h"

namespace cinch::rt {

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

}  // namespace cinch::rt
