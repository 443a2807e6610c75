#include "runtime/simulator/rank_classes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <span>

namespace cinch::rt {
namespace {

using Numbers = std::vector<std::uint64_t>;

// Numbers what differs, in the order of first appearance.
class Colours {
 public:
  std::uint32_t of(const Numbers& what) {
    return known_.try_emplace(what, static_cast<std::uint32_t>(known_.size())).first->second;
  }

 private:
  std::map<Numbers, std::uint32_t> known_;
};

std::vector<std::uint32_t> numbers_to(std::uint32_t end) {
  std::vector<std::uint32_t> numbers(end);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

void add_speeds(std::span<const double> speeds, Numbers& to) {
  for (const double speed : speeds) to.push_back(std::bit_cast<std::uint64_t>(speed));
}

}  // namespace

RankClasses::RankClasses(const Topology& topology, std::uint32_t world)
    : topology_(&topology), class_of_(world) {}

std::pair<std::uint32_t, std::uint32_t> RankClasses::machine_around(std::uint32_t rank) const {
  const std::uint32_t size = topology_->shape().ranks_per_machine, first = rank / size * size;
  return {first, std::min(first + size, world())};
}

std::pair<std::uint32_t, std::uint32_t> RankClasses::leaf_around(std::uint32_t rank) const {
  const auto [first, end] = topology_->ranks_of_leaf(topology_->leaf_of(rank));
  return {first, std::min(end, world())};
}

std::pair<std::uint32_t, std::uint32_t> RankClasses::pod_around(std::uint32_t rank) const {
  const auto [first, end] =
      topology_->ranks_of_pod(topology_->pod_of_leaf(topology_->leaf_of(rank)));
  return {first, std::min(end, world())};
}

// Units of one colour in the order of their first ones.
void RankClasses::set_classes(std::vector<std::uint32_t> colours, std::uint32_t ranks_per_unit) {
  ranks_per_unit_ = ranks_per_unit;
  std::map<std::uint32_t, std::uint32_t> number;
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    const auto next = static_cast<std::uint32_t>(number.size());
    const std::uint32_t unit = rank / ranks_per_unit * ranks_per_unit;
    const std::uint32_t unit_class = number.try_emplace(colours[unit], next).first->second;
    class_of_[rank] = unit_class * ranks_per_unit + rank % ranks_per_unit;
    if (class_of_[rank] >= members_.size()) members_.resize(class_of_[rank] + 1);
    members_[class_of_[rank]].push_back(rank);
  }
}

RankClasses::Groups RankClasses::groups_of(const std::vector<std::uint32_t>& colours) {
  Groups made;
  std::map<std::uint32_t, std::uint32_t> number;
  for (std::uint32_t group = 0; group < colours.size(); ++group) {
    const auto [at, is_new] = number.try_emplace(colours[group], made.num_classes());
    if (is_new) {
      made.first.push_back(group);
      made.size.push_back(0);
    }
    made.class_of.push_back(at->second);
    ++made.size[at->second];
  }
  return made;
}

RankClasses RankClasses::each(const Topology& topology, std::uint32_t world) {
  RankClasses made(topology, world);
  made.set_classes(numbers_to(world), 1);
  made.leaves_ = groups_of(numbers_to(made.last_leaf() + 1));
  made.pods_ = groups_of(numbers_to(topology.pod_of_leaf(made.last_leaf()) + 1));
  return made;
}

RankClasses RankClasses::alike(const Topology& topology, const std::vector<std::uint32_t>& keys,
                               bool are_machines) {
  const auto world = static_cast<std::uint32_t>(keys.size());
  RankClasses made(topology, world);
  Colours of_rank, of_machine, of_leaf, of_pod, of_all;
  const std::uint32_t on_each = topology.shape().ranks_per_machine;
  std::vector<std::uint32_t> own(world), machine(world), leaves, pods, all(world);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    Numbers what = {keys[rank], are_machines ? rank % on_each : 0};
    add_speeds(topology.speeds_of_rank(rank), what);
    own[rank] = of_rank.of(what);
  }
  for (std::uint32_t first = 0; first < world; first = made.machine_around(first).second) {
    const std::uint32_t end = made.machine_around(first).second;
    Numbers what(own.begin() + first, own.begin() + end);
    std::ranges::sort(what);
    std::fill(machine.begin() + first, machine.begin() + end, of_machine.of(what));
  }
  for (std::uint32_t leaf = 0; leaf <= made.last_leaf(); ++leaf) {
    const auto [first, end] = made.leaf_around(topology.ranks_of_leaf(leaf).first);
    Numbers what;
    for (std::uint32_t at = first; at < end; at += on_each) what.push_back(machine[at]);
    std::ranges::sort(what);
    what.push_back(topology.site_of(first));
    add_speeds(topology.speeds_of_leaf(leaf), what);
    leaves.push_back(of_leaf.of(what));
  }
  for (std::uint32_t leaf = 0; leaf < leaves.size();) {
    const std::uint32_t pod = topology.pod_of_leaf(leaf);
    Numbers what;
    for (; leaf < leaves.size() && topology.pod_of_leaf(leaf) == pod; ++leaf) {
      what.push_back(leaves[leaf]);
    }
    std::ranges::sort(what);
    add_speeds(topology.speeds_of_pod(pod), what);
    pods.push_back(of_pod.of(what));
  }
  Colours of_leaf_in_pod;
  for (std::uint32_t leaf = 0; leaf < leaves.size(); ++leaf) {
    leaves[leaf] = of_leaf_in_pod.of({leaves[leaf], pods[topology.pod_of_leaf(leaf)]});
  }
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    all[rank] = of_all.of({own[rank], machine[rank], leaves[topology.leaf_of(rank)]});
  }
  made.leaves_ = groups_of(leaves);
  made.pods_ = groups_of(pods);
  made.set_classes(std::move(all), are_machines ? on_each : 1);
  return made;
}

RankClasses RankClasses::circle(const Topology& topology, const std::vector<std::uint32_t>& keys) {
  const auto world = static_cast<std::uint32_t>(keys.size());
  const RankClasses units = alike(topology, keys, false);
  RankClasses made(topology, world);
  made.is_circle_ = true;
  const bool is_one_leaf = made.last_leaf() == 0;
  // Where every machine is like every other one, a place under the leaf says all.
  std::uint32_t period =
      is_one_leaf ? topology.shape().ranks_per_machine : made.leaf_around(0).second;
  // A pod's last leaf goes on to another pod.
  const std::uint32_t num_pods = topology.pod_of_leaf(made.last_leaf()) + 1;
  if (num_pods > 1) period = made.pod_around(0).second;
  if (units.num_classes() != 1) period = world;
  std::vector<std::uint32_t> places = numbers_to(world);
  for (std::uint32_t& place : places) place %= period;
  made.set_classes(std::move(places), 1);
  made.leaves_ = period == world ? groups_of(numbers_to(made.last_leaf() + 1)) : units.leaves_;
  made.pods_ = period == world ? groups_of(numbers_to(num_pods)) : units.pods_;
  return made;
}

std::shared_ptr<const StandIns> RankClasses::stand_ins() const {
  auto made = std::make_shared<StandIns>();
  made->world = world();
  if (is_circle_) {
    made->is_circle = true;
    made->num_classes = num_classes();
    made->written.resize(world());
    std::iota(made->written.begin(), made->written.end(), 0U);
    return made;
  }
  made->ranks_per_unit = ranks_per_unit_;
  made->written.assign(world(), kNotWritten);
  for (std::uint32_t first = 0; first < num_classes(); first += ranks_per_unit_) {
    const auto size = static_cast<double>(members_[first].size());
    const std::uint32_t unit_class = first / ranks_per_unit_;
    const auto write = [&](bool is_rest) {
      for (std::uint32_t i = 0; i < ranks_per_unit_; ++i) {
        const auto& members = members_[first + i];
        made->written[is_rest ? members.back() : members.front()] =
            static_cast<std::uint32_t>(made->units.size()) * ranks_per_unit_ + i;
      }
      made->units.push_back({unit_class, is_rest ? size - 1 : 1, is_rest, size, size > 1});
    };
    write(false);
    if (size > 1) write(true);
  }
  return made;
}

std::array<RankClasses::Seen, 5> RankClasses::seen(std::uint32_t from, std::uint32_t to) const {
  std::array<Seen, 5> all{};
  const std::uint32_t rank = members_[from][0];
  const auto& others = members_[to];
  if (topology_->site_of(rank) != topology_->site_of(others[0])) {
    all[static_cast<std::size_t>(Distance::Far)] = {static_cast<std::uint32_t>(others.size()), rank,
                                                    others[0]};
    return all;
  }
  // Each range lies around the one before.
  const std::pair<std::uint32_t, std::uint32_t> ranges[] = {
      {rank, rank + 1}, machine_around(rank), leaf_around(rank), pod_around(rank), {0, world()}};
  const auto begin_of = [&others](std::uint32_t first) {
    return std::ranges::lower_bound(others, first) - others.begin();
  };
  for (std::size_t i = 0; i < 4; ++i) {
    const auto first = begin_of(ranges[i + 1].first), inner = begin_of(ranges[i].first);
    const auto behind = begin_of(ranges[i].second), last = begin_of(ranges[i + 1].second);
    const auto count = static_cast<std::uint32_t>((inner - first) + (last - behind));
    if (count == 0) continue;
    all[i] = {count, rank, others[static_cast<std::size_t>(inner > first ? first : behind)]};
  }
  return all;
}

}  // namespace cinch::rt
