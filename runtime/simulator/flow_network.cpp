#include "runtime/simulator/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cinch::rt {
namespace {

// A path may serve 8 TiB in such parts.
constexpr double kPartsPerByte = 1 << 20;
constexpr double kPicosecondsPerSecond = 1e12;
// A flow that takes longer, some weeks, does not end: sums of times must not overflow.
constexpr double kMostWait = 2e18;
// Links whose shares differ by less are full together; sums of shares are no more exact.
constexpr double kSameShare = 1 + 1e-12;

double parts_per_picosecond(double bytes_per_second) {
  return bytes_per_second * (kPartsPerByte / kPicosecondsPerSecond);
}

}  // namespace

FlowNetwork::FlowNetwork(const std::vector<double>& link_bytes_per_second)
    : links_(link_bytes_per_second.size()),
      capacity_(link_bytes_per_second.size()),
      users_(link_bytes_per_second.size()),
      carried_(link_bytes_per_second.size()),
      first_use_(1) {
  std::ranges::transform(link_bytes_per_second, capacity_.begin(), parts_per_picosecond);
}

std::size_t FlowNetwork::add_path(const FlowPath& path) {
  const auto [known, is_new] = known_.try_emplace(path, paths_.size());
  if (!is_new) return known->second;
  paths_.emplace_back();
  for (const auto& [link, part] : path.links) {
    link_of_.push_back(link);
    place_.push_back(0);
    part_.push_back(part);
  }
  first_use_.push_back(static_cast<std::uint32_t>(link_of_.size()));
  most_.push_back(parts_per_picosecond(path.most_bytes_per_second));
  rates_.push_back(0);
  num_flows_.push_back(0);
  seen_.push_back(0);
  return known->second;
}

void FlowNetwork::activate(std::uint32_t path) {
  ++num_active_paths_;
  for (std::uint32_t use = first_use_[path]; use < first_use_[path + 1]; ++use) {
    auto& users = users_[link_of_[use]];
    place_[use] = static_cast<std::uint32_t>(users.size());
    users.push_back({path, use});
  }
}

void FlowNetwork::deactivate(std::uint32_t path) {
  --num_active_paths_;
  for (std::uint32_t use = first_use_[path]; use < first_use_[path + 1]; ++use) {
    auto& users = users_[link_of_[use]];
    users[place_[use]] = users.back();
    place_[users.back().use] = place_[use];
    users.pop_back();
    changed_links_.push_back(link_of_[use]);
  }
}

void FlowNetwork::start(std::size_t path, std::uint64_t bytes, std::uint64_t id) {
  Path& to = paths_[path];
  const auto number = static_cast<std::uint32_t>(path);
  if (to.flows.empty()) {
    to.served = 0;
    to.since = now_;
    to.rate = 0;
    activate(number);
  } else {
    set_rate(number, to.rate);
  }
  const auto parts = static_cast<Served>(bytes) * static_cast<Served>(kPartsPerByte);
  to.flows.emplace(to.served + parts, id);
  num_flows_[path] = static_cast<double>(to.flows.size());
  for (std::uint32_t use = first_use_[path]; use < first_use_[path + 1]; ++use) {
    carried_[link_of_[use]] += part_[use] * static_cast<double>(bytes);
  }
  ++num_active_;
  changed_.push_back(number);
}

// Goes on to now_ at the rate so far.
void FlowNetwork::set_rate(std::uint32_t path, double rate) {
  Path& of = paths_[path];
  const auto more = static_cast<Served>(std::floor(of.rate * static_cast<double>(now_ - of.since)));
  of.served = std::min(of.served + more, of.flows.top().first - 1);
  of.since = now_;
  of.rate = rate;
}

void FlowNetwork::schedule(std::uint32_t path) {
  Path& of = paths_[path];
  ++of.version;
  const auto left = static_cast<double>(of.flows.top().first - of.served);
  const double wait = std::ceil(left / of.rate);
  if (!(wait < kMostWait)) return;
  ends_.push(
      {of.since + std::max<Picoseconds>(1, static_cast<Picoseconds>(wait)), path, of.version});
}

Picoseconds FlowNetwork::next_end() {
  if (!changed_.empty() || !changed_links_.empty()) update_rates();
  while (!ends_.empty() && ends_.top().version != paths_[ends_.top().path].version) ends_.pop();
  return ends_.empty() ? kNeverEnds : ends_.top().time;
}

void FlowNetwork::advance(Picoseconds now, std::vector<std::uint64_t>& ended) {
  if (now == now_) return;
  const bool ends_some = next_end() <= now;
  now_ = now;
  if (!ends_some) return;
  while (!ends_.empty() && ends_.top().time <= now) {
    const End end = ends_.top();
    ends_.pop();
    Path& path = paths_[end.path];
    if (path.version != end.version) continue;
    path.served = path.flows.top().first;
    path.since = now;
    ++path.version;
    while (!path.flows.empty() && path.flows.top().first <= path.served) {
      ended.push_back(path.flows.top().second);
      path.flows.pop();
      --num_active_;
    }
    num_flows_[end.path] = static_cast<double>(path.flows.size());
    if (path.flows.empty()) {
      deactivate(end.path);
    } else {
      changed_.push_back(end.path);
    }
  }
}

void FlowNetwork::freeze(std::uint32_t path, double rate) {
  rates_[path] = rate;
  for (std::uint32_t use = first_use_[path]; use < first_use_[path + 1]; ++use) {
    Link& link = links_[link_of_[use]];
    const double weight = part_[use] * num_flows_[path];
    link.left -= rate * weight;
    link.open -= weight;
    --link.num_open;
  }
}

double FlowNetwork::share_of(const Link& link) {
  if (link.num_open == 0) return std::numeric_limits<double>::infinity();
  return std::max(0.0, link.left) / link.open;
}

// Progressive filling: all flows get the same until a link is full, or a flow has the most it may.
std::size_t FlowNetwork::freeze_least() {
  double share = std::numeric_limits<double>::infinity(), most = share;
  for (const std::uint32_t link : links_seen_) share = std::min(share, share_of(links_[link]));
  std::erase_if(capped_, [this](std::uint32_t path) { return rates_[path] >= 0; });
  for (const std::uint32_t path : capped_) most = std::min(most, most_[path]);
  chosen_.clear();
  if (most < share) {
    for (const std::uint32_t path : capped_) {
      if (most_[path] == most) choose(path);
    }
  } else {
    for (const std::uint32_t link : links_seen_) {
      if (share_of(links_[link]) > share * kSameShare) continue;
      for (const User& user : users_[link]) choose(user.path);
    }
  }
  for (const std::uint32_t path : chosen_) freeze(path, std::min(share, most));
  return chosen_.size();
}

void FlowNetwork::choose(std::uint32_t path) {
  if (rates_[path] >= 0) return;
  rates_[path] = 0;
  chosen_.push_back(path);
}

FlowNetwork::Link& FlowNetwork::see(std::uint32_t link) {
  Link& of = links_[link];
  if (of.seen == update_) return of;
  of = {capacity_[link], 0, 0, update_};
  links_seen_.push_back(link);
  return of;
}

void FlowNetwork::visit(std::uint32_t path) {
  if (seen_[path] == update_) return;
  seen_[path] = update_;
  rates_[path] = -1;
  paths_seen_.push_back(path);
  if (most_[path] > 0) capped_.push_back(path);
  const double flows = num_flows_[path];
  for (std::uint32_t use = first_use_[path]; use < first_use_[path + 1]; ++use) {
    Link& link = see(link_of_[use]);
    link.open += part_[use] * flows;
    ++link.num_open;
  }
}

void FlowNetwork::update_rates() {
  ++update_;
  links_seen_.clear();
  paths_seen_.clear();
  capped_.clear();
  for (const std::uint32_t path : changed_) {
    paths_[path].is_changed = !paths_[path].flows.empty();
    if (paths_[path].is_changed) visit(path);
  }
  for (const std::uint32_t link : changed_links_) see(link);
  // More are seen on the way.
  std::size_t num_followed = 0;
  while (num_followed < links_seen_.size() && paths_seen_.size() < num_active_paths_) {
    for (const User& user : users_[links_seen_[num_followed]]) visit(user.path);
    ++num_followed;
  }
  changed_.clear();
  changed_links_.clear();
  for (std::size_t left = paths_seen_.size(); left > 0;) left -= freeze_least();
  for (const std::uint32_t path : paths_seen_) {
    if (paths_[path].rate != rates_[path]) {
      set_rate(path, rates_[path]);
    } else if (!paths_[path].is_changed) {
      continue;
    }
    paths_[path].is_changed = false;
    schedule(path);
  }
}

}  // namespace cinch::rt
