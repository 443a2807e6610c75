// `auto`: finds the fastest plan for these tensors on these ranks. It measures networks and
// programs, predicts all plans, and tries those that predictions cannot tell apart.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "runtime/autoplan/measure.h"
#include "runtime/planner/choose_plan.h"

namespace cinch::rt {

struct KnownNetwork {
  NetworkModel model;
  /// By kMeasuredKinds, seconds per byte: time that exchanges take on the threads that issue them,
  /// with all ranks active, besides the time on links.
  std::array<double, kMeasuredKinds.size()> copying{};
};

struct AutoPlanInputs {
  PlanRequest request;                     // without plan, piece size and lengths
  SyncOptions session;                     // without plan; threads: the rank's own number, not 0
  std::vector<ConstTensorView> gradients;  // of this rank, by tensor, in host memory
  std::uint64_t step = 0;
  ChoiceSpace space;
  bool measures_network = true;         // the same on all ranks; if false, `network` is used
  std::optional<KnownNetwork> network;  // only rank 0 needs it
  double trial_seconds = 2;             // the most time for trials, about; 0: no trials
};

struct AutoPlan {
  PlanRequest request;
  std::optional<PlanChoice> choice;  // on rank 0; none if there is no choice
};

/// False if a program has a `sync` whose collectives are only known as it runs: its time cannot be
/// predicted, and it runs under every plan.
bool has_choice(const PlanRequest& request);
AutoPlan without_choice(PlanRequest request);

/// Chooses the plan. All ranks call it and get the same request. Takes some seconds and leaves no
/// state behind. Errors: those of measuring and of SyncSession, and Cancelled if another rank
/// failed; the transport then takes no more exchanges.
Result<AutoPlan> choose_auto_plan(const AutoPlanInputs& inputs, Transport& transport);

}  // namespace cinch::rt
