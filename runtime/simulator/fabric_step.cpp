#include "runtime/simulator/fabric_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace cinch::rt {
namespace {

// Tasks of all ranks of a ring that are simulated one by one: about two minutes.
constexpr double kMostRingTasks = 2e8;
// Of one rank: about 2 GiB.
constexpr double kMostTasksOfRank = 4e6;
// Of a hop on one rank: encode, send, receive, clear, add, decode.
constexpr double kTasksOfHop = 6;
// Of classes of ranks: about 1 GiB, and half a minute.
constexpr double kMostClassTasks = 1.5e6;
// For each rank that is written: encode, send, receive and add on the way up, and as much back.
constexpr double kTasksOfMachines = 7;

std::vector<std::string_view> plans_of(const PlanRequest& request) {
  if (request.routes.empty()) return {request.plan};
  std::vector<std::string_view> plans;
  plans.reserve(request.route_of.size());
  for (const std::uint32_t route : request.route_of) plans.push_back(request.routes[route].plan);
  return plans;
}

// Ranks of different speed, or with other tensors of their own, have different ones.
Result<std::vector<std::uint32_t>> keys_of(const FabricStep& step, bool is_circle) {
  std::vector<std::vector<double>> facts(step.request.world);
  for (std::uint32_t rank = 0; rank < step.slowness.size(); ++rank) {
    facts[rank].push_back(step.slowness[rank]);
  }
  if (!is_circle) {
    for (const WholeTensor& whole : TRY(find_whole_tensors(step.request))) {
      facts[whole.owner].insert(facts[whole.owner].end(),
                                {static_cast<double>(whole.bundle), static_cast<double>(whole.rows),
                                 static_cast<double>(whole.cols)});
    }
  }
  std::map<std::vector<double>, std::uint32_t> known;
  std::vector<std::uint32_t> keys;
  keys.reserve(facts.size());
  for (auto& each : facts) {
    const auto next = static_cast<std::uint32_t>(known.size());
    keys.push_back(known.try_emplace(std::move(each), next).first->second);
  }
  return keys;
}

// About how many bundles the plan has.
double bundles_of(const PlanRequest& request) {
  double bundles = 1;
  for (const PlanTensor& tensor : request.tensors) {
    const bool is_whole =
        tensor.codec != kDense && !request.codecs[tensor.codec].can_cut && request.routes.empty();
    const double bytes = static_cast<double>(tensor.num_elems()) * sizeof(float);
    bundles += is_whole ? 1 : bytes / static_cast<double>(request.piece_bytes);
  }
  return bundles;
}

// Every rank that is written has tasks for every other one, and in `hierarchical` several.
Status check_size(const PlanRequest& request, const RankClasses& classes, bool has_machines) {
  const double written =
      static_cast<double>(request.stand_ins->units.size()) * request.stand_ins->ranks_per_unit;
  const double of_one = has_machines ? kTasksOfMachines * written : written;
  const double tasks = bundles_of(request) * classes.num_classes() * of_one;
  if (tasks <= kMostClassTasks) return Ok{};
  return invalid(fmt::format(
      "{} ranks of which {} are different take about {:.0e} tasks, and at most {:.0e} are "
      "simulated: owners of small tensors and slow ranks are different; larger pieces take fewer",
      classes.world(), classes.num_classes(), tasks, kMostClassTasks));
}

// Every rank has tasks for each hop, and a bundle has two hops for each rank.
Status check_circle(const FabricStep& step, const RankClasses& classes) {
  const double of_one = bundles_of(step.request) * 2.0 * classes.world() * kTasksOfHop;
  if (of_one > kMostTasksOfRank) {
    return invalid(
        fmt::format("in a ring of {} ranks each has about {:.0e} tasks, and at most "
                    "{:.0e} are simulated",
                    classes.world(), of_one, kMostTasksOfRank));
  }
  const double tasks = of_one * classes.num_classes();
  if (tasks <= kMostRingTasks) return Ok{};
  return invalid(
      fmt::format("a ring of {} ranks of which {} are different takes about {:.0e} "
                  "tasks, and at most {:.0e} are simulated",
                  classes.world(), classes.num_classes(), tasks, kMostRingTasks));
}

}  // namespace

Result<std::shared_ptr<const RankClasses>> classify_ranks(const Topology& topology,
                                                          FabricStep& step) {
  PlanRequest& request = step.request;
  const std::vector<std::string_view> plans = plans_of(request);
  const auto has = [&plans](std::string_view name) {
    return std::ranges::find(plans, name) != plans.end();
  };
  const bool is_circle = std::ranges::all_of(plans, [](auto name) { return name == "ring"; });
  const char* const single = has("tree")                                ? "tree"
                             : has("ps")                                ? "ps"
                             : has("ring") && !is_circle                ? "ring beside other plans"
                             : step.routing.rule == RoutingRule::Hashed ? "hashed paths"
                                                                        : nullptr;
  if (single != nullptr) {
    return invalid(
        fmt::format("{}: no two of {} ranks are alike, and at most {} are simulated one "
                    "by one",
                    single, request.world, kMostSingleRanks));
  }
  if (is_circle && !TRY(find_whole_tensors(request)).empty()) {
    return invalid(fmt::format(
        "ring: tensors so small that one of {} ranks owns them whole, so no two ranks are alike, "
        "and at most {} are simulated one by one",
        request.world, kMostSingleRanks));
  }
  const auto keys = TRY(keys_of(step, is_circle));
  auto classes = std::make_shared<const RankClasses>(
      is_circle ? RankClasses::circle(topology, keys)
                : RankClasses::alike(topology, keys, has("hierarchical")));
  if (is_circle) CINCH_TRY(check_circle(step, *classes));
  request.stand_ins = step.inputs.stand_ins = classes->stand_ins();
  if (!is_circle) CINCH_TRY(check_size(request, *classes, has("hierarchical")));
  const std::uint32_t each = request.stand_ins->ranks_per_unit;
  request.world = is_circle ? request.world
                            : static_cast<std::uint32_t>(request.stand_ins->units.size()) * each;
  if (!has("hierarchical")) request.ranks_per_machine = 1;
  step.inputs.network.world = request.world;
  step.inputs.network.ranks_per_machine = 1;
  step.inputs.joins_rounds = !is_circle;
  step.inputs.slowness.clear();
  for (std::uint32_t i = 0; !step.slowness.empty() && i < request.world; ++i) {
    if (is_circle && i == classes->num_classes()) break;
    const std::uint32_t of =
        is_circle ? i : request.stand_ins->units[i / each].unit_class * each + i % each;
    step.inputs.slowness.push_back(step.slowness[classes->members(of)[0]]);
  }
  return classes;
}

Result<FabricStepResult> simulate_on_fabric(const Topology& topology, FabricStep step) {
  FabricStepResult made;
  std::shared_ptr<const RankClasses> classes;
  if (step.has_classes) {
    classes = TRY(classify_ranks(topology, step));
  } else {
    classes = std::make_shared<const RankClasses>(RankClasses::each(topology, step.request.world));
    step.inputs.slowness = step.slowness;
  }
  made.num_classes = classes->num_classes();
  made.plan = TRY(build_plan(step.request));
  std::shared_ptr<const PairRoutes> routes;
  if (!step.has_classes && step.routing.rule != RoutingRule::Sprayed) {
    routes =
        std::make_shared<const PairRoutes>(TRY(route_pairs(topology, made.plan, step.routing)));
    made.routing = routes->report;
  }
  step.inputs.make_links = [&topology, &made, classes, routes] {
    return std::make_unique<FabricLinks>(topology, classes, &made.carried, routes);
  };
  made.cost = TRY(estimate_cost(made.plan, step.inputs, &made.spans));
  return made;
}

}  // namespace cinch::rt
