#include "runtime/simulator/flow_network.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

FlowNetwork::FlowNetwork(std::vector<double> link_bytes_per_second)
    : capacity_(link_bytes_per_second.size()),
      carried_(link_bytes_per_second.size()),
      left_(link_bytes_per_second.size()),
      open_(link_bytes_per_second.size()),
      num_open_(link_bytes_per_second.size()),
      paths_of_(link_bytes_per_second.size()) {
  std::ranges::transform(link_bytes_per_second, capacity_.begin(), parts_per_picosecond);
}

std::size_t FlowNetwork::add_path(const FlowPath& path) {
  const auto [known, is_new] = known_.try_emplace(path, paths_.size());
  if (is_new) paths_.push_back({path});
  return known->second;
}

void FlowNetwork::start(std::size_t path, std::uint64_t bytes, std::uint64_t id) {
  Path& to = paths_[path];
  if (to.flows.empty()) {
    to.served = 0;
    active_.push_back(path);
  }
  const auto parts = static_cast<Served>(bytes) * static_cast<Served>(kPartsPerByte);
  to.flows.emplace(to.served + parts, id);
  for (const auto& [link, part] : to.of.links) carried_[link] += part * static_cast<double>(bytes);
  ++num_active_;
  is_stale_ = true;
}

Picoseconds FlowNetwork::end_of(const Path& path) const {
  const auto left = static_cast<double>(path.flows.top().first - path.served);
  const double wait = std::ceil(left / path.rate);
  if (!(wait < kMostWait)) return kNeverEnds;
  return now_ + std::max<Picoseconds>(1, static_cast<Picoseconds>(wait));
}

void FlowNetwork::find_next_end() {
  next_end_ = kNeverEnds;
  for (const std::size_t index : active_) next_end_ = std::min(next_end_, end_of(paths_[index]));
}

Picoseconds FlowNetwork::next_end() {
  if (is_stale_) update_rates();
  return next_end_;
}

bool FlowNetwork::end_flows(Path& path, Picoseconds now, std::vector<std::uint64_t>& ended) {
  const Served first = path.flows.top().first;
  const auto more = static_cast<Served>(std::floor(path.rate * static_cast<double>(now - now_)));
  const bool ends = end_of(path) <= now;
  path.served = ends ? first : std::min(path.served + more, first - 1);
  while (!path.flows.empty() && path.flows.top().first <= path.served) {
    ended.push_back(path.flows.top().second);
    path.flows.pop();
    --num_active_;
  }
  return ends;
}

void FlowNetwork::advance(Picoseconds now, std::vector<std::uint64_t>& ended) {
  if (now == now_) return;
  if (is_stale_) update_rates();
  for (const std::size_t index : active_) {
    Path& path = paths_[index];
    if (end_flows(path, now, ended)) is_stale_ = true;
  }
  std::erase_if(active_, [this](std::size_t index) { return paths_[index].flows.empty(); });
  now_ = now;
  if (!is_stale_) find_next_end();
}

void FlowNetwork::freeze(Path& path, double rate) {
  path.rate = rate;
  for (const auto& [link, part] : path.of.links) {
    const double weight = part * static_cast<double>(path.flows.size());
    left_[link] -= rate * weight;
    open_[link] -= weight;
    --num_open_[link];
  }
}

double FlowNetwork::share_of(std::uint32_t link) const {
  if (num_open_[link] == 0) return std::numeric_limits<double>::infinity();
  return std::max(0.0, left_[link]) / open_[link];
}

// Progressive filling: all flows get the same until a link is full, or a flow has the most it may.
std::size_t FlowNetwork::freeze_least() {
  double share = std::numeric_limits<double>::infinity(), most = share;
  for (const std::uint32_t link : in_use_) share = std::min(share, share_of(link));
  for (const std::size_t index : active_) {
    if (!is_frozen_[index] && paths_[index].of.most_bytes_per_second > 0) {
      most = std::min(most, most_of(paths_[index]));
    }
  }
  chosen_.clear();
  if (most < share) {
    for (const std::size_t index : active_) {
      if (!is_frozen_[index] && most_of(paths_[index]) == most) choose(index);
    }
  } else {
    for (const std::uint32_t link : in_use_) {
      if (share_of(link) > share * kSameShare) continue;
      for (const std::size_t index : paths_of_[link]) choose(index);
    }
  }
  for (const std::size_t index : chosen_) freeze(paths_[index], std::min(share, most));
  return chosen_.size();
}

void FlowNetwork::choose(std::size_t path) {
  if (is_frozen_[path]) return;
  is_frozen_[path] = true;
  chosen_.push_back(path);
}

double FlowNetwork::most_of(const Path& path) const {
  const double most = path.of.most_bytes_per_second;
  return most > 0 ? parts_per_picosecond(most) : std::numeric_limits<double>::infinity();
}

void FlowNetwork::update_rates() {
  is_stale_ = false;
  is_frozen_.resize(paths_.size());
  in_use_.clear();
  for (const std::size_t index : active_) {
    is_frozen_[index] = false;
    for (const auto& [link, part] : paths_[index].of.links) {
      if (num_open_[link]++ == 0) {
        in_use_.push_back(link);
        left_[link] = capacity_[link];
        open_[link] = 0;
        paths_of_[link].clear();
      }
      paths_of_[link].push_back(index);
      open_[link] += part * static_cast<double>(paths_[index].flows.size());
    }
  }
  for (std::size_t left = active_.size(); left > 0;) left -= freeze_least();
  find_next_end();
}

}  // namespace cinch::rt
