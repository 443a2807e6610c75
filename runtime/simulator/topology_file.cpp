// Topologies as JSON.
#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/core/json.h"
#include "runtime/simulator/topology.h"

namespace cinch::rt {
namespace {

constexpr double kSecond = 1e12;  // in picoseconds
constexpr const char* kTopologyKind = "cinch topology";
constexpr int kTopologyFormat = 1;
constexpr std::uint64_t kMostParts = 1 << 20;  // ranks, machines, leaves, spines

double positive(const JsonPart& part) {
  const double value = part.number();
  if (value <= 0) part.refuse("is not above 0: " + part.value.dump());
  return value;
}

Picoseconds microseconds(const JsonPart& part) {
  constexpr double kMost = 1e9;
  if (part.number() > kMost) part.refuse("is more than a thousand seconds");
  return static_cast<Picoseconds>(std::llround(part.number() * kSecond / 1e6));
}

std::uint32_t number_in(const JsonPart& from, const char* key, std::optional<std::uint32_t> usual) {
  const auto found = from.find(key);
  if (!found && usual) return *usual;
  const JsonPart part = from.at(key);
  const auto count = static_cast<std::uint32_t>(part.count(kMostParts));
  if (count == 0) part.refuse("is not above 0: 0");
  return count;
}

Topology::Port read_port(const JsonPart& from) {
  constexpr double kBytesPerGigabit = 1e9 / 8;
  constexpr double kLeastGigabits = 1e-6;
  from.refuse_others({"gigabits", "latency_us", "message_us", "sites", "loss", "segment_bytes"});
  Topology::Port port;
  const JsonPart speed = from.at("gigabits");
  port.bytes_per_second = positive(speed) * kBytesPerGigabit;
  if (speed.number() < kLeastGigabits) speed.refuse("is less than a kilobit a second");
  if (const auto latency = from.find("latency_us")) port.latency = microseconds(*latency);
  return port;
}

Topology::Join read_join(const JsonPart& from, std::size_t num_sites) {
  constexpr double kMathis = 1.22;
  Topology::Join join;
  const JsonPart pair = from.at("sites");
  const std::vector<JsonPart> both = pair.entries();
  if (both.size() != 2) pair.refuse("are not two sites");
  join.from = static_cast<std::uint32_t>(both[0].count(num_sites - 1));
  join.to = static_cast<std::uint32_t>(both[1].count(num_sites - 1));
  if (join.from == join.to) pair.refuse("are the same site");
  join.port = read_port(from);
  const auto loss = from.find("loss");
  if (!loss || loss->number() == 0) return join;
  if (loss->number() >= 1) loss->refuse("is not a share below 1: " + loss->value.dump());
  const auto segment = from.find("segment_bytes");
  const double bytes = segment ? positive(*segment) : 1460;
  const double round_trip = 2 * static_cast<double>(join.port.latency) / kSecond;
  if (round_trip <= 0) from.refuse("loses bytes, and has no latency_us");
  join.most_of_stream = kMathis * bytes / (round_trip * std::sqrt(loss->number()));
  return join;
}

Topology::Shape read_shape(const JsonPart& file) {
  Topology::Shape shape;
  file.refuse_others({"file", "format", "ranks_per_machine", "machines_per_leaf", "spines",
                      "leaves_per_pod", "machine", "nic", "uplink", "core", "sites", "joins",
                      "links"});
  shape.ranks_per_machine = number_in(file, "ranks_per_machine", 1);
  shape.machines_per_leaf = number_in(file, "machines_per_leaf", 1);
  shape.nic = read_port(file.at("nic"));
  const bool has_machine = shape.ranks_per_machine > 1 || file.find("machine").has_value();
  shape.machine = has_machine ? read_port(file.at("machine")) : shape.nic;
  if (const auto message = file.at("nic").find("message_us"))
    shape.message = microseconds(*message);
  const JsonPart sites = file.at("sites");
  std::uint64_t leaves = 0;
  for (const JsonPart& site : sites.entries()) {
    site.refuse_others({"machines"});
    shape.machines.push_back(number_in(site, "machines", std::nullopt));
    leaves = std::max<std::uint64_t>(leaves, shape.machines.back() / shape.machines_per_leaf);
  }
  if (shape.machines.empty()) sites.refuse("has no site");
  // One leaf needs no spine.
  shape.spines = leaves > 1 ? number_in(file, "spines", std::nullopt) : 1;
  shape.uplink = leaves > 1 ? read_port(file.at("uplink")) : shape.nic;
  if (file.find("leaves_per_pod")) {
    shape.leaves_per_pod = number_in(file, "leaves_per_pod", std::nullopt);
    shape.core = read_port(file.at("core"));
  } else if (const auto core = file.find("core")) {
    core->refuse("is there without leaves_per_pod");
  }
  if (const auto joins = file.find("joins")) {
    for (const JsonPart& join : joins->entries()) {
      shape.joins.push_back(read_join(join, shape.machines.size()));
      const Topology::Join& made = shape.joins.back();
      for (std::size_t i = 0; i + 1 < shape.joins.size(); ++i) {
        const Topology::Join& other = shape.joins[i];
        if (std::minmax(other.from, other.to) != std::minmax(made.from, made.to)) continue;
        join.refuse("joins two sites that are joined already");
      }
    }
  }
  if (const auto links = file.find("links")) {
    for (const JsonPart& link : links->entries()) {
      link.refuse_others({"link", "share"});
      const JsonPart share = link.at("share");
      constexpr double kLeastShare = 1e-6;
      if (share.number() > 1) share.refuse("is more than all of its speed");
      if (share.number() > 0 && share.number() < kLeastShare) share.refuse("is nearly nothing");
      shape.changes.push_back({link.at("link").text(), share.number()});
    }
  }
  return shape;
}

}  // namespace

Result<Topology> topology_from_json(std::string_view text) {
  auto shape = TRY(read_json_file(text, kTopologyKind, kTopologyFormat, "topology", read_shape));
  return Topology::make(std::move(shape));
}

}  // namespace cinch::rt
