// Bodies of planner.h: orders by bundle and round (Task::round).
#include "runtime/planner/planner.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace cinch::rt {
namespace {

using Indices = std::vector<std::uint32_t>;

// A bundle's next round comes after the round before of `ahead` bundles: these are on the links
// while it is computed.
Indices order_of(const Indices& bundles, const std::vector<Task>& tasks, std::uint32_t ahead) {
  Indices order(bundles.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t t) {
    return std::tuple(bundles[t] + ahead * tasks[t].round, tasks[t].round, t);
  });
  return order;
}

Indices places_in(const Indices& order) {
  Indices places(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  return places;
}

}  // namespace

void interleave_bundles(const Plan& plan, RankPlan& rank) {
  Indices bundles;
  for (const Task& task : rank.tasks) bundles.push_back(plan.groups[task.groups[0]].bundle);
  const Indices order = order_of(bundles, rank.tasks, kBundlesAhead), place = places_in(order);
  std::vector<Task> tasks;
  tasks.reserve(order.size());
  for (const std::uint32_t t : order) {
    Task& task = tasks.emplace_back(std::move(rank.tasks[t]));
    for (std::uint32_t& earlier : task.after) earlier = place[earlier];
    std::ranges::sort(task.after);
  }
  rank.tasks = std::move(tasks);
}

std::vector<std::uint32_t> order_of_tasks(const Plan& plan, std::uint32_t rank,
                                          const std::vector<std::uint32_t>& place_of_tensor,
                                          std::uint32_t ahead) {
  // By bundle: the place of its last tensor, and its number, by which bundles of one tensor keep
  // their order.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bundles;
  for (const Group& group : plan.groups) {
    while (bundles.size() <= group.bundle) {
      bundles.emplace_back(0, static_cast<std::uint32_t>(bundles.size()));
    }
    for (const std::uint32_t piece : group.pieces) {
      std::uint32_t& last = bundles[group.bundle].first;
      last = std::max(last, place_of_tensor[plan.pieces[piece].tensor]);
    }
  }
  std::ranges::sort(bundles);
  Indices number(bundles.size());
  for (std::uint32_t i = 0; i < bundles.size(); ++i) number[bundles[i].second] = i;
  const auto& tasks = plan.ranks[rank].tasks;
  Indices of_task;
  for (const Task& task : tasks) of_task.push_back(number[plan.groups[task.groups[0]].bundle]);
  return places_in(order_of(of_task, tasks, ahead));
}

}  // namespace cinch::rt
