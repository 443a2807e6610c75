#include "runtime/simulator/fabric_links.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cinch::rt {
namespace {

constexpr double kPicosecondsOfSecond = 1e12;

std::vector<double> speeds_of(const Topology& topology) {
  std::vector<double> speeds;
  speeds.reserve(topology.links().size());
  for (const FabricLink& link : topology.links()) speeds.push_back(link.bytes_per_second);
  return speeds;
}

}  // namespace

FabricLinks::FabricLinks(const Topology& topology, std::uint32_t num_ranks,
                         std::vector<double>* carried)
    : topology_(topology),
      num_ranks_(num_ranks),
      carried_(carried),
      flows_(speeds_of(topology)),
      known_(std::size_t{num_ranks} * num_ranks) {}

FabricLinks::~FabricLinks() {
  if (carried_ != nullptr) *carried_ = flows_.carried_bytes();
}

Status FabricLinks::send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes,
                         std::uint64_t id) {
  Known& known = known_[std::size_t{from} * num_ranks_ + to];
  if (known.latency < 0) {
    const FabricRoute route = TRY(topology_.route(from, to));
    known = {flows_.add_path(route.path), route.latency};
  }
  flows_.start(known.path, bytes, sent_.size());
  sent_.push_back({id, known.latency});
  return Ok{};
}

Picoseconds FabricLinks::next() {
  const Picoseconds end = flows_.next_end();
  return arrivals_.empty() ? end : std::min(end, arrivals_.top().first);
}

double FabricLinks::next_arrival() {
  const Picoseconds time = next();
  if (time == kNeverEnds) return std::numeric_limits<double>::infinity();
  return static_cast<double>(time) / kPicosecondsOfSecond;
}

void FabricLinks::advance(double now, std::vector<std::uint64_t>& arrived) {
  const auto time = static_cast<Picoseconds>(std::llround(now * kPicosecondsOfSecond));
  ended_.clear();
  flows_.advance(time, ended_);
  for (const std::uint64_t flow : ended_) {
    arrivals_.emplace(time + sent_[flow].latency, sent_[flow].id);
  }
  while (!arrivals_.empty() && arrivals_.top().first <= time) {
    arrived.push_back(arrivals_.top().second);
    arrivals_.pop();
  }
}

}  // namespace cinch::rt
