// Plans beside each other: steps of each are taken on the ranks and the transport that it is for.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/sync/sync_session.h"

namespace cinch::rt {

struct TrialOptions {
  SyncOptions session;          // the plan is that of each trial
  std::uint64_t step = 0;       // that is taken, again and again
  double seconds = 1;           // about so long all trials may take
  double clearly_slower = 1.3;  // of the fastest so far: such a plan is not looked at again
};

/// Seconds of a step by each plan: the median of what the slowest rank took, without the first step
/// of a session. All ranks call it with the same plans and options and get the same; gradients are
/// their own, by the plans' tensors, in the host's memory. No state outlives it. Errors: those of
/// SyncSession; the transport takes no more exchanges then.
Result<std::vector<double>> try_plans(std::span<const std::shared_ptr<const Plan>> plans,
                                      std::span<const ConstTensorView> gradients,
                                      const TrialOptions& options, Transport& transport);

}  // namespace cinch::rt
