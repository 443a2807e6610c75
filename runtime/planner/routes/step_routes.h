// Plans a step in which each group of tensors is exchanged in its own way. The costs of a group's
// ways are those of short plans of that group alone. A search over lanes combines the ways, and a
// simulation of all ranks decides between what it finds and simpler plans.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/plan_cost.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/routes/route_states.h"

namespace cinch::rt {

/// A codec of the request, or kDense, and how its payloads travel.
struct RouteWay {
  std::uint32_t codec = kDense;
  PlanRoute route;
};

struct StepRoutesRequest {
  /// Without plan and piece size; the codecs of its tensors are not looked at.
  PlanRequest plans;
  /// Where ranks encode on a device, encoding takes time from the backward pass, and CPUs may
  /// encode for them (CostInputs::on_cpus). Else threads encode and decode, one payload at a time.
  CostInputs costs;
  /// By tensor: the codecs that it may take, besides f32.
  std::vector<std::vector<std::uint32_t>> codecs;
  std::vector<std::uint64_t> piece_bytes = {4 << 20, 1 << 20};
  /// A codec that all tensors take in a plan to compare with, under the name "f16"; else kDense.
  std::uint32_t half_codec = kDense;
};

/// Tensors that are sent together.
struct PlannedGroup {
  std::vector<std::uint32_t> tensors;
  double ready_seconds = 0;  // of the last one
  RouteWay way;
  /// Seconds of work and of its exchanges, as in a step of this group alone.
  double encode_seconds = 0, network_seconds = 0, decode_seconds = 0;
  /// By how much it ends later than the backward pass and all groups that end before it. The sum is
  /// what the step takes longer than the backward pass.
  double exposed_seconds = 0;
};

struct PlannedStep {
  std::string name;     // "f32", "onebit", "above a size", "by group"
  PlanRequest request;  // for build_plan
  PlanCost cost;
};

struct StepRoutes {
  std::vector<PlannedGroup> groups;  // of the chosen plan
  PlannedStep chosen;
  Plan plan;                          // of the chosen request
  PlanSpans spans;                    // of its tasks, as predicted
  std::vector<PlannedStep> compared;  // f32, f16, then one for each codec, then the search's
  /// Of the model that the search asks: the time of its best plan, and what none of its plans can
  /// be shorter than. In order: where lanes serve groups in the order of the plan.
  double lanes_seconds = 0, bound_seconds = 0;
  double in_order_seconds = 0, in_order_bound_seconds = 0;
};

/// More tensors are refused: their plan would be too large.
inline constexpr std::size_t kMostPlannedTensors = 100'000;

/// The best plan by group that the search finds, without comparing it with others.
Result<PlannedStep> plan_by_group(const StepRoutesRequest& request);

/// Errors: InvalidArgument (no tensor, too many of them), those of build_plan and estimate_cost.
Result<StepRoutes> plan_step(const StepRoutesRequest& request);

}  // namespace cinch::rt
