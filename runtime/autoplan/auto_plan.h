// `auto`: the plan that is fastest for these tensors on these ranks. Networks and programs are
// measured, all plans predicted, and those tried that predictions cannot tell apart.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "runtime/autoplan/plan_trials.h"
#include "runtime/planner/choose_plan.h"

namespace cinch::rt {

struct KnownNetwork {
  NetworkModel model;
  /// By kMeasuredKinds, seconds a byte: what exchanges take of the threads that issue them, with
  /// all ranks at it, beside what links take.
  std::array<double, kMeasuredKinds.size()> copying{};
};

struct AutoPlanInputs {
  PlanRequest request;                     // without plan, piece size and lengths
  SyncOptions session;                     // without plan; threads: as many as the rank has, not 0
  std::vector<ConstTensorView> gradients;  // of this rank, by tensor, in the host's memory
  std::uint64_t step = 0;
  ChoiceSpace space;
  bool measures_network = true;         // the same on all ranks; else
  std::optional<KnownNetwork> network;  // rank 0 has it
  double trial_seconds = 2;             // about, at most; 0: nothing is tried
};

struct AutoPlan {
  PlanRequest request;
  std::optional<PlanChoice> choice;  // on rank 0; none where there is no choice
};

/// Not where a program has a `sync` whose collectives only show on the way: nothing is known of it,
/// and it runs under every plan.
bool has_choice(const PlanRequest& request);
AutoPlan without_choice(PlanRequest request);

/// All ranks call it and get the same request. Takes some seconds, and leaves no state behind.
/// Errors: those of measuring and of SyncSession, and Cancelled where another rank had one; the
/// transport takes no more exchanges then.
Result<AutoPlan> choose_auto_plan(const AutoPlanInputs& inputs, Transport& transport);

}  // namespace cinch::rt
