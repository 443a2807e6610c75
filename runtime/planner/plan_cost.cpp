#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/planner/plan_cost.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

double CostCurve::at(double elems) const {
  if (samples.empty()) return 0;
  if (samples.size() == 1) {
    const Sample& only = samples[0];
    return only.size > 0 ? only.seconds * elems / only.size : only.seconds;
  }
  auto after = std::ranges::find_if(samples, [elems](const Sample& s) { return s.size >= elems; });
  after = std::clamp(after, samples.begin() + 1, samples.end() - 1);
  const Sample& a = *(after - 1);
  const double slope = std::max(0.0, (after->seconds - a.seconds) / (after->size - a.size));
  return std::max(0.0, a.seconds + slope * (elems - a.size));
}

namespace {

// The tasks of a rank in the order of their places.
void reorder(std::vector<SimulatedTask>& tasks, const std::vector<std::uint32_t>& places) {
  std::vector<SimulatedTask> ordered(tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    for (std::uint32_t& earlier : tasks[t].after) earlier = places[earlier];
    ordered[places[t]] = std::move(tasks[t]);
  }
  tasks = std::move(ordered);
}

// `ahead`: as of order_of_tasks; 0: the plan's own order.
Result<PlanCost> simulate(const Plan& plan, const CostInputs& inputs, std::uint32_t ahead,
                          PlanSpans* spans) {
  SharedCores cores{inputs.ranks_per_machine, inputs.cores, inputs.threads, {}};
  if (inputs.is_on_device) {
    cores.threads_beside_device = inputs.on_cpus ? inputs.on_cpus->threads : 0;
  }
  PlanSimulation simulation(cores, inputs.make_links ? inputs.make_links() : nullptr);
  std::vector<std::uint32_t> places(plan.tensors.size());
  std::iota(places.begin(), places.end(), 0U);
  std::ranges::stable_sort(places, {}, [&](std::uint32_t tensor) {
    return inputs.ready_seconds.empty() ? 0 : inputs.ready_seconds[tensor];
  });
  std::vector<std::uint32_t> place_of_tensor(places.size());
  for (std::uint32_t i = 0; i < places.size(); ++i) place_of_tensor[places[i]] = i;
  std::vector<std::vector<std::uint32_t>> places_of_tasks(plan.world());  // if they are reordered
  const auto tasks_of = [&](std::uint32_t rank,
                            const CostInputs& of) -> Result<std::shared_ptr<const SimulatedTasks>> {
    std::vector<SimulatedTask> tasks = TRY(simulated_tasks(plan, rank, of));
    if (ahead > 0) {
      places_of_tasks[rank] = order_of_tasks(plan, rank, place_of_tensor, ahead);
      reorder(tasks, places_of_tasks[rank]);
    }
    return std::make_shared<const SimulatedTasks>(std::move(tasks));
  };
  const bool is_circle = inputs.stand_ins && inputs.stand_ins->is_circle;
  std::vector<std::uint32_t> written;  // by simulated rank
  if (is_circle) {
    CostInputs of_one = inputs;
    std::map<double, std::shared_ptr<const SimulatedTasks>> known;
    for (std::uint32_t i = 0; i < inputs.stand_ins->num_classes; ++i) {
      const double slowness = inputs.slowness.empty() ? 1 : inputs.slowness[i];
      of_one.slowness = {slowness};
      auto& tasks = known[slowness];
      if (tasks == nullptr) tasks = TRY(tasks_of(0, of_one));
      simulation.add_rank(tasks, i);
      written.push_back(0);
    }
  }
  for (std::uint32_t rank = 0; rank < plan.world() && !is_circle; ++rank) {
    if (inputs.stand_ins && inputs.stand_ins->unit_of(rank).is_rest) continue;
    simulation.add_rank(TRY(tasks_of(rank, inputs)));
    written.push_back(rank);
  }
  auto cost = simulation.run();
  if (!cost || spans == nullptr) return cost;
  spans->assign(plan.world(), {});
  for (std::uint32_t i = 0; i < written.size(); ++i) {
    const std::vector<std::uint32_t>& places = places_of_tasks[written[i]];
    std::vector<TaskSpan> own = simulation.spans(i);
    for (std::size_t t = 0; t < places.size(); ++t) own[t] = simulation.spans(i)[places[t]];
    std::vector<TaskSpan>& to = (*spans)[written[i]];
    if (to.empty()) to = own;
    for (std::size_t t = 0; t < own.size(); ++t) to[t].end = std::max(to[t].end, own[t].end);
  }
  return cost;
}

}  // namespace

Status check_cost_inputs(const Plan& plan, const CostInputs& inputs) {
  if (plan.world() != inputs.network.world) {
    return invalid(
        fmt::format("a plan for {} ranks, the network has {}", plan.world(), inputs.network.world));
  }
  const std::size_t num_ready = inputs.ready_seconds.size();
  if (num_ready != 0 && num_ready != plan.tensors.size()) {
    return invalid(fmt::format("{} ready times of {} tensors", num_ready, plan.tensors.size()));
  }
  return Ok{};
}

Result<PlanCost> estimate_cost(const Plan& plan, const CostInputs& inputs, PlanSpans* spans) {
  CINCH_TRY(check_cost_inputs(plan, inputs));
  const auto& ready = inputs.ready_seconds;
  if (ready.empty()) return simulate(plan, inputs, 0, spans);
  // Ranks learn the order from a first step in the plan's own order, as SyncSession does.
  const PlanCost first = TRY(simulate(plan, inputs, 0, nullptr));
  const bool waits = 2 * std::ranges::max(ready) > first.seconds;
  return simulate(plan, inputs, waits ? kFewBundlesAhead : kBundlesAhead, spans);
}

std::vector<double> tensor_ends(const Plan& plan, const PlanSpans& spans) {
  std::vector<double> ends(plan.tensors.size(), 0);
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    for (std::size_t t = 0; t < spans[rank].size(); ++t) {
      for (const std::uint32_t group : plan.ranks[rank].tasks[t].groups) {
        for (const std::uint32_t piece : plan.groups[group].pieces) {
          double& end = ends[plan.pieces[piece].tensor];
          end = std::max(end, spans[rank][t].end);
        }
      }
    }
  }
  return ends;
}

}  // namespace cinch::rt
