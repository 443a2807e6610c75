#include "runtime/simulator/fabric_links.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cinch::rt {
namespace {

constexpr double kPicosecondsOfSecond = 1e12;
// Of each class: out and in within the machine, out and in of the NIC.
constexpr std::uint32_t kLinksOfRank = 4;

// Of a leaf, or of a pod.
std::uint32_t links_of_group(const Topology& topology, bool are_spines_one) {
  return are_spines_one ? 2 : 2 * topology.shape().spines;
}

// By link of the network: what flows may have of one of those that are alike.
std::vector<double> speeds_of(const Topology& topology, const RankClasses& classes,
                              bool are_spines_one) {
  std::vector<double> speeds;
  for (std::uint32_t c = 0; c < classes.num_classes(); ++c) {
    const auto of_rank = topology.speeds_of_rank(classes.members(c)[0]);
    speeds.insert(speeds.end(), of_rank.begin(), of_rank.end());
  }
  const auto add_group = [&](const std::vector<double>& of_spines) {
    if (of_spines.empty() || !are_spines_one) {
      speeds.insert(speeds.end(), of_spines.begin(), of_spines.end());
      return;
    }
    const double all = static_cast<double>(topology.shape().spines) * of_spines[0];
    speeds.insert(speeds.end(), {all, all});
  };
  for (const std::uint32_t leaf : classes.leaves().first) {
    add_group(topology.speeds_of_leaf(leaf));
  }
  for (const std::uint32_t pod : classes.pods().first) add_group(topology.speeds_of_pod(pod));
  for (std::uint32_t i = 0; i < 2 * topology.shape().joins.size(); ++i) {
    speeds.push_back(topology.speed(topology.first_join_link() + i));
  }
  return speeds;
}

}  // namespace

FabricLinks::FabricLinks(const Topology& topology, std::shared_ptr<const RankClasses> classes,
                         std::vector<double>* carried, std::shared_ptr<const PairRoutes> routes)
    : topology_(topology),
      classes_(std::move(classes)),
      routes_(std::move(routes)),
      carried_(carried),
      are_spines_one_(topology.are_uplinks_alike() && routes_ == nullptr),
      first_leaf_link_(kLinksOfRank * classes_->num_classes()),
      first_core_link_(first_leaf_link_ + classes_->leaves().num_classes() *
                                              links_of_group(topology, are_spines_one_)),
      first_join_link_(first_core_link_ + (topology.shape().leaves_per_pod == 0
                                               ? 0
                                               : classes_->pods().num_classes() *
                                                     links_of_group(topology, are_spines_one_))),
      flows_(speeds_of(topology, *classes_, are_spines_one_)) {}

FabricLinks::FabricLinks(const Topology& topology, std::uint32_t num_ranks,
                         std::vector<double>* carried)
    : FabricLinks(topology,
                  std::make_shared<const RankClasses>(RankClasses::each(topology, num_ranks)),
                  carried) {}

FabricLinks::~FabricLinks() {
  if (carried_ == nullptr) return;
  carried_->assign(topology_.num_links(), 0);
  const double spines = are_spines_one_ ? topology_.shape().spines : 1;
  for (std::uint32_t link = 0; link < carried_->size(); ++link) {
    const Topology::Place place = topology_.place_of(link);
    const std::size_t known = place.tier == Tier::Leaf   ? classes_->leaves().class_of.size()
                              : place.tier == Tier::Core ? classes_->pods().class_of.size()
                              : place.tier == Tier::Site ? topology_.shape().joins.size()
                                                         : classes_->world();
    if (place.index >= known) continue;
    const bool is_of_spine = place.tier == Tier::Leaf || place.tier == Tier::Core;
    const double bytes = flows_.carried_bytes()[shared(link).link];
    (*carried_)[link] = is_of_spine ? bytes / spines : bytes;
  }
}

FabricLinks::Shared FabricLinks::shared(std::uint32_t link) const {
  const Topology::Place place = topology_.place_of(link);
  const std::uint32_t second = place.is_second ? 1 : 0;
  switch (place.tier) {
    case Tier::Machine:
    case Tier::Nic: {
      const std::uint32_t c = classes_->class_of(place.index);
      const std::uint32_t first = place.tier == Tier::Nic ? 2 : 0;
      return {kLinksOfRank * c + first + second, static_cast<double>(classes_->members(c).size())};
    }
    case Tier::Leaf:
    case Tier::Core: {
      const bool is_leaf = place.tier == Tier::Leaf;
      const RankClasses::Groups& groups = is_leaf ? classes_->leaves() : classes_->pods();
      const std::uint32_t c = groups.class_of[place.index];
      const std::uint32_t at = are_spines_one_ ? 0 : 2 * place.spine;
      const std::uint32_t each = links_of_group(topology_, are_spines_one_);
      return {(is_leaf ? first_leaf_link_ : first_core_link_) + c * each + at + second,
              static_cast<double>(groups.size[c])};
    }
    case Tier::Site:
      break;
  }
  return {first_join_link_ + 2 * place.index + second, 1};
}

Result<FabricLinks::Way> FabricLinks::way_of(std::uint32_t from, const RankClasses::Seen& seen,
                                             double copies) {
  std::span<const SpineShare> spines;
  if (routes_ != nullptr) {
    const auto found = routes_->shares.find({seen.from, seen.to});
    if (found != routes_->shares.end()) spines = found->second;
  }
  const FabricRoute route = TRY(topology_.route(seen.from, seen.to, spines));
  const double flows = copies * seen.count * static_cast<double>(classes_->members(from).size());
  FlowPath path;
  path.most_bytes_per_second = route.path.most_bytes_per_second;
  for (const FlowLink& each : route.path.links) {
    const Shared on = shared(each.link);
    const double part = each.part * flows / on.num_alike;
    const auto known = std::ranges::find(path.links, on.link, &FlowLink::link);
    if (known == path.links.end()) {
      path.links.push_back({on.link, part});
    } else {
      known->part += part;
    }
  }
  return Way{flows_.add_path(path), route.latency};
}

Result<const std::vector<FabricLinks::Way>*> FabricLinks::ways(std::uint32_t from,
                                                               const SimulatedFlow& flow) {
  const auto [at, is_new] = known_.try_emplace({from, flow.to, flow.scope, flow.copies});
  if (!is_new) return &at->second;
  if (flow.scope == FlowScope::Next) {
    const std::uint32_t rank = classes_->members(from)[0];
    const RankClasses::Seen next{1, rank, (rank + 1) % classes_->world()};
    at->second.push_back(TRY(way_of(from, next, flow.copies)));
    return &at->second;
  }
  const auto seen = classes_->seen(from, flow.to);
  for (std::size_t distance = 0; distance < seen.size(); ++distance) {
    const bool is_own = distance == static_cast<std::size_t>(RankClasses::Distance::Machine);
    if (seen[distance].count == 0) continue;
    if (is_own && flow.scope == FlowScope::OtherMachines) continue;
    if (!is_own && flow.scope == FlowScope::OwnMachine) continue;
    at->second.push_back(TRY(way_of(from, seen[distance], flow.copies)));
  }
  return &at->second;
}

Status FabricLinks::send(std::uint32_t from, const SimulatedFlow& flow, std::uint64_t id) {
  const std::vector<Way>& found = *TRY(ways(from, flow));
  transfers_.push_back({id, static_cast<std::uint32_t>(found.size())});
  for (const Way& way : found) {
    flows_.start(way.path, static_cast<std::uint64_t>(flow.bytes), sent_.size());
    sent_.push_back({transfers_.size() - 1, way.latency});
  }
  return Ok{};
}

Picoseconds FabricLinks::next() {
  const Picoseconds end = flows_.next_end();
  return arrivals_.empty() ? end : std::min(end, arrivals_.top().first);
}

double FabricLinks::next_arrival() {
  said_ = next();
  if (said_ == kNeverEnds) return std::numeric_limits<double>::infinity();
  return static_cast<double>(said_) / kPicosecondsOfSecond;
}

Picoseconds FabricLinks::time_of(double seconds) const {
  if (seconds == static_cast<double>(said_) / kPicosecondsOfSecond) return said_;
  return static_cast<Picoseconds>(std::llround(seconds * kPicosecondsOfSecond));
}

void FabricLinks::advance(double now, std::vector<std::uint64_t>& arrived) {
  now_ = std::max(now_, time_of(now));
  const Picoseconds time = now_;
  ended_.clear();
  flows_.advance(time, ended_);
  for (const std::uint64_t flow : ended_) {
    arrivals_.emplace(time + sent_[flow].latency, sent_[flow].transfer);
  }
  while (!arrivals_.empty() && arrivals_.top().first <= time) {
    Transfer& transfer = transfers_[arrivals_.top().second];
    if (--transfer.num_on_way == 0) arrived.push_back(transfer.id);
    arrivals_.pop();
  }
}

}  // namespace cinch::rt
