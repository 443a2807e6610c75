// A step on a fabric, by every rank or by classes of ranks that are alike.
#pragma once
#include "runtime/planner/planner.h"
#include "runtime/simulator/fabric_links.h"

namespace cinch::rt {

/// With more, ranks that are alike are simulated as one.
inline constexpr std::uint32_t kMostSingleRanks = 512;

struct FabricStep {
  PlanRequest request;
  CostInputs inputs;  // `make_links` is set for each simulation
  /// By rank; empty: all are alike. In place of CostInputs::slowness.
  std::vector<double> slowness;
  bool has_classes = false;
  /// Between leaves. Classes of ranks are alike only where every flow takes an equal share of all
  /// spines: coloured and cut flows are sprayed there, as which they load links where all flows run
  /// at once.
  RoutingOptions routing = {.rule = RoutingRule::Sprayed};
};

struct FabricStepResult {
  Plan plan;  // with classes: of the written ranks
  PlanCost cost;
  PlanSpans spans;              // by rank and task of the plan
  std::vector<double> carried;  // by link of the topology: bytes
  std::uint32_t num_classes = 0;
  std::optional<RoutingReport> routing;  // where single flows were routed
};

/// Sets stand-ins, slowness and links of a step whose `request.world` counts all ranks. Returns the
/// classes; the links refer to the topology. Errors: InvalidArgument (plans and programs in which
/// no two ranks are alike: "tree", "ps", rings beside other plans, hashed paths; a ring too long
/// for ranks that differ).
Result<std::shared_ptr<const RankClasses>> classify_ranks(const Topology& topology,
                                                          FabricStep& step);

/// Errors: those of build_plan, estimate_cost and classify_ranks.
Result<FabricStepResult> simulate_on_fabric(const Topology& topology, FabricStep step);

}  // namespace cinch::rt
