// Bodies of planner.h. A task's round is the number of exchanges, of any rank, before its end;
// it is the same for all tasks of one exchange. So all ranks agree on an order by bundle and round,
// and no task waits for a later one in it.
#include "runtime/planner/planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace cinch::rt {
namespace {

using Indices = std::vector<std::uint32_t>;

// Tasks that happen together: those of one collective, both sides of a message, or a single
// computing task.
struct Meeting {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tasks;  // rank, task
  std::size_t missing = 0;  // earlier tasks that have no round yet
  std::uint32_t round = 0;
  bool is_exchange = false;
};

class Rounds {
 public:
  explicit Rounds(const Plan& plan) : plan_(plan) {
    meeting_.resize(plan.world());
    next_.resize(plan.world());
    for (std::uint32_t rank = 0; rank < plan.world(); ++rank) add_rank(rank);
  }

  /// By rank and task; empty if exchanges do not match, which check_plan reports.
  std::vector<Indices> find() {
    Indices ready;
    for (std::uint32_t m = 0; m < meetings_.size(); ++m) {
      if (meetings_[m].missing == 0) ready.push_back(m);
    }
    std::size_t num_found = 0;
    for (; !ready.empty(); ++num_found) {
      const std::uint32_t m = ready.back();
      ready.pop_back();
      if (meetings_[m].is_exchange) ++meetings_[m].round;
      release(m, ready);
    }
    if (num_found < meetings_.size()) return {};
    std::vector<Indices> rounds(plan_.world());
    for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
      for (const std::uint32_t m : meeting_[rank]) rounds[rank].push_back(meetings_[m].round);
    }
    return rounds;
  }

 private:
  // Both sides of a message, and all ranks' parts of a collective, have the same name: its ranks
  // (or none) and its number.
  using Name = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

  std::uint32_t meeting_of(std::uint32_t rank, const Task& task) {
    const auto make = [this] {
      meetings_.emplace_back();
      return static_cast<std::uint32_t>(meetings_.size() - 1);
    };
    if (task.lane() != Lane::Network) return make();
    std::uint32_t from = UINT32_MAX, to = UINT32_MAX;
    const bool is_exchange = task.kind == TaskKind::Exchange;
    if (is_exchange && task.exchange == ExchangeKind::Send) {
      from = rank;
      to = task.peer;
    } else if (is_exchange && task.exchange == ExchangeKind::Receive) {
      from = task.peer;
      to = rank;
    }
    const std::uint32_t number = counts_[{rank, from, to}]++;
    const auto [found, is_new] = names_.try_emplace({from, to, number}, 0);
    if (is_new) found->second = make();
    meetings_[found->second].is_exchange = true;
    return found->second;
  }

  void add_rank(std::uint32_t rank) {
    const auto& tasks = plan_.ranks[rank].tasks;
    next_[rank].resize(tasks.size());
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
      const std::uint32_t m = meeting_of(rank, tasks[t]);
      meeting_[rank].push_back(m);
      meetings_[m].tasks.emplace_back(rank, t);
      meetings_[m].missing += tasks[t].after.size();
      for (const std::uint32_t earlier : tasks[t].after) next_[rank][earlier].push_back(t);
    }
  }

  void release(std::uint32_t m, Indices& ready) {
    for (const auto& [rank, task] : meetings_[m].tasks) {
      for (const std::uint32_t later : next_[rank][task]) {
        const std::uint32_t other = meeting_[rank][later];
        meetings_[other].round = std::max(meetings_[other].round, meetings_[m].round);
        if (--meetings_[other].missing == 0) ready.push_back(other);
      }
    }
  }

  const Plan& plan_;
  std::vector<Meeting> meetings_;
  std::vector<Indices> meeting_;            // by rank and task
  std::vector<std::vector<Indices>> next_;  // by rank and task: those that wait for it
  std::map<Name, std::uint32_t> names_, counts_;
};

// A bundle's next round comes after the round before of `ahead` bundles: these are on the links
// while it is computed.
Indices order_of(const Indices& bundles, const Indices& rounds, std::uint32_t ahead) {
  Indices order(bundles.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t t) {
    return std::tuple(bundles[t] + ahead * rounds[t], rounds[t], t);
  });
  return order;
}

Indices places_in(const Indices& order) {
  Indices places(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  return places;
}

void reorder(RankPlan& rank, const Indices& bundles, const Indices& rounds) {
  const Indices order = order_of(bundles, rounds, kBundlesAhead), place = places_in(order);
  std::vector<Task> tasks;
  tasks.reserve(order.size());
  for (const std::uint32_t t : order) {
    Task& task = tasks.emplace_back(std::move(rank.tasks[t]));
    for (std::uint32_t& earlier : task.after) earlier = place[earlier];
    std::ranges::sort(task.after);
  }
  rank.tasks = std::move(tasks);
}

// Groups that share a task belong to one bundle.
class GroupSets {
 public:
  explicit GroupSets(const Plan& plan) : first_(plan.groups.size()) {
    std::iota(first_.begin(), first_.end(), 0U);
    for (const RankPlan& rank : plan.ranks) {
      for (const Task& task : rank.tasks) {
        for (const std::uint32_t group : task.groups) join(task.groups[0], group);
      }
    }
  }
  std::uint32_t set_of(std::uint32_t group) {
    while (first_[group] != group) group = first_[group] = first_[first_[group]];
    return group;
  }

 private:
  void join(std::uint32_t a, std::uint32_t b) { first_[set_of(b)] = set_of(a); }

  Indices first_;
};

}  // namespace

void interleave_bundles(Plan& plan, const BundleOfTask& bundles) {
  const std::vector<Indices> rounds = Rounds(plan).find();
  for (std::size_t rank = 0; rank < rounds.size(); ++rank) {
    reorder(plan.ranks[rank], bundles[rank], rounds[rank]);
  }
}

std::vector<std::uint32_t> order_of_tasks(const Plan& plan, std::uint32_t rank,
                                          const std::vector<std::uint32_t>& place_of_tensor,
                                          std::uint32_t ahead) {
  GroupSets sets(plan);
  Indices last(plan.groups.size());  // by set of groups: the place of its last tensor
  for (std::uint32_t group = 0; group < plan.groups.size(); ++group) {
    for (const std::uint32_t piece : plan.groups[group].pieces) {
      std::uint32_t& of = last[sets.set_of(group)];
      of = std::max(of, place_of_tensor[plan.pieces[piece].tensor]);
    }
  }
  // Bundles of one tensor keep their order, by first group.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bundles;
  for (std::uint32_t group = 0; group < plan.groups.size(); ++group) {
    if (sets.set_of(group) == group) bundles.emplace_back(last[group], group);
  }
  std::ranges::sort(bundles);
  Indices number(plan.groups.size());
  for (std::uint32_t i = 0; i < bundles.size(); ++i) number[bundles[i].second] = i;
  const auto rounds = Rounds(plan).find();
  const auto& tasks = plan.ranks[rank].tasks;
  Indices of_task;
  for (const Task& task : tasks) of_task.push_back(number[sets.set_of(task.groups[0])]);
  return places_in(order_of(of_task, rounds[rank], ahead));
}

}  // namespace cinch::rt
