#include "runtime/fabric/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace cinch::rt {
namespace {

// Loads of links are kept for all pairs of a leaf and a spine.
constexpr std::uint64_t kMostLinks = 1 << 24;
constexpr std::uint32_t kMostSpines = 1 << 16;
// A terabyte a second. Products with bytes and spines then fit into 128 bits.
constexpr std::uint64_t kMostSpeed = UINT64_C(1) << 40;

bool is_speed(std::uint64_t speed) {
  return speed > 0 && speed <= kMostSpeed;
}

Status check_shape(const Fabric& fabric) {
  if (fabric.num_leaves == 0) return invalid("a fabric without leaves");
  if (fabric.hosts_per_leaf == 0) return invalid("a fabric without hosts");
  if (fabric.num_spines == 0) return invalid("a fabric without spines");
  const std::uint64_t hosts = std::uint64_t{fabric.num_leaves} * fabric.hosts_per_leaf;
  if (hosts > UINT32_MAX) {
    return fail(ErrorKind::OutOfRange, fmt::format("{} hosts: at most 2^32 - 1", hosts));
  }
  const std::uint64_t links = std::uint64_t{fabric.num_leaves} * fabric.num_spines;
  if (fabric.num_spines > kMostSpines || links > kMostLinks) {
    return fail(ErrorKind::OutOfRange,
                fmt::format("{} spines with {} links to leaves: at most {} with {}",
                            fabric.num_spines, links, kMostSpines, kMostLinks));
  }
  if (!is_speed(fabric.host_speed) || !is_speed(fabric.link_speed)) {
    return fail(ErrorKind::OutOfRange, fmt::format("speeds {} and {}: from 1 to 2^40",
                                                   fabric.host_speed, fabric.link_speed));
  }
  return Ok{};
}

Status check_failures(const Fabric& fabric) {
  for (std::size_t i = 0; i < fabric.down_spines.size(); ++i) {
    if (fabric.down_spines[i] < fabric.num_spines) continue;
    return fail(ErrorKind::OutOfRange, fmt::format("down_spines[{}]: spine {} of {}", i,
                                                   fabric.down_spines[i], fabric.num_spines));
  }
  for (std::size_t i = 0; i < fabric.down_links.size(); ++i) {
    const SpineLink link = fabric.down_links[i];
    if (link.leaf >= fabric.num_leaves) {
      return fail(ErrorKind::OutOfRange,
                  fmt::format("down_links[{}]: leaf {} of {}", i, link.leaf, fabric.num_leaves));
    }
    if (link.spine >= fabric.num_spines) {
      return fail(ErrorKind::OutOfRange,
                  fmt::format("down_links[{}]: spine {} of {}", i, link.spine, fabric.num_spines));
    }
  }
  return Ok{};
}

}  // namespace

PieceRange bytes_of(const FlowPiece& piece, std::uint64_t flow_bytes) {
  const auto at = [&](std::uint32_t part) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(flow_bytes) * part /
                                      piece.parts);
  };
  return {at(piece.begin), at(piece.end)};
}

Status check_flows(const Fabric& fabric, std::span<const Flow> flows) {
  if (flows.size() >= UINT32_MAX) {
    return fail(ErrorKind::OutOfRange, fmt::format("{} flows: at most 2^32 - 2", flows.size()));
  }
  const std::uint32_t num_hosts = fabric.num_leaves * fabric.hosts_per_leaf;
  std::uint64_t left = INT64_MAX;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const Flow& flow = flows[i];
    const std::uint32_t last = std::max(flow.source, flow.destination);
    if (last >= num_hosts) {
      return fail(ErrorKind::OutOfRange, fmt::format("flow {}: host {} of {}", i, last, num_hosts));
    }
    if (flow.source == flow.destination) {
      return invalid(fmt::format("flow {} goes from host {} to itself", i, flow.source));
    }
    if (flow.bytes > left) {
      return fail(ErrorKind::Overflow, "the flows together have 2^63 bytes or more");
    }
    left -= flow.bytes;
  }
  return Ok{};
}

Result<UsableSpines> UsableSpines::of(const Fabric& fabric) {
  CINCH_TRY(check_shape(fabric));
  CINCH_TRY(check_failures(fabric));
  return UsableSpines(fabric);
}

UsableSpines::UsableSpines(const Fabric& fabric)
    : num_spines_(fabric.num_spines),
      is_up_(std::size_t{fabric.num_leaves} * fabric.num_spines, true),
      reaches_all_(fabric.num_leaves, true) {
  const auto set_down = [&](std::uint32_t leaf, std::uint32_t spine) {
    is_up_[std::size_t{leaf} * num_spines_ + spine] = false;
  };
  for (const std::uint32_t spine : fabric.down_spines) {
    for (std::uint32_t leaf = 0; leaf < fabric.num_leaves; ++leaf) set_down(leaf, spine);
  }
  for (const SpineLink link : fabric.down_links) set_down(link.leaf, link.spine);
  for (std::uint32_t spine = 0; spine < num_spines_; ++spine) {
    std::uint32_t num_leaves = 0;
    for (std::uint32_t leaf = 0; leaf < fabric.num_leaves; ++leaf) {
      num_leaves += reaches(leaf, spine) ? 1 : 0;
    }
    if (num_leaves >= 2) all_.push_back(spine);
  }
  for (std::uint32_t leaf = 0; leaf < fabric.num_leaves; ++leaf) {
    reaches_all_[leaf] =
        std::ranges::all_of(all_, [&](std::uint32_t spine) { return reaches(leaf, spine); });
  }
}

Result<std::span<const std::uint32_t>> UsableSpines::between(std::uint32_t leaf,
                                                             std::uint32_t other) {
  std::span<const std::uint32_t> found = all_;
  if (!reaches_all_[leaf] || !reaches_all_[other]) {
    between_.clear();
    for (const std::uint32_t spine : all_) {
      if (reaches(leaf, spine) && reaches(other, spine)) between_.push_back(spine);
    }
    found = between_;
  }
  if (found.empty()) {
    return fail(ErrorKind::Unavailable,
                fmt::format("no spine is left between leaves {} and {}", leaf, other));
  }
  return found;
}

Result<LinkLoads> LinkLoads::for_pieces(const Fabric& fabric, std::span<const FlowPiece> pieces) {
  std::uint64_t units = 1;
  for (const FlowPiece& piece : pieces) {
    if (units % piece.parts == 0) continue;
    const std::uint64_t factor = piece.parts / std::gcd(units, std::uint64_t{piece.parts});
    if (__builtin_mul_overflow(units, factor, &units)) {
      return fail(ErrorKind::Overflow,
                  "pieces are fractions that have no common denominator of 64 bits");
    }
  }
  return LinkLoads(fabric, units);
}

LinkLoads::LinkLoads(const Fabric& fabric, std::uint64_t units_per_byte)
    : hosts_per_leaf_(fabric.hosts_per_leaf),
      num_spines_(fabric.num_spines),
      units_per_byte_(units_per_byte),
      up_(std::size_t{fabric.num_leaves} * fabric.num_spines, 0),
      down_(up_) {}

void LinkLoads::add(const Flow& flow, const FlowPiece& piece) {
  if (piece.spine == kWithinLeaf) return;
  const Units units = Units{units_per_byte_ / piece.parts} * (piece.end - piece.begin) * flow.bytes;
  up_[link(flow.source, piece.spine)] += units;
  down_[link(flow.destination, piece.spine)] += units;
}

LinkLoads::Units LinkLoads::busier(const Flow& flow, std::uint32_t spine) const {
  return std::max(up_[link(flow.source, spine)], down_[link(flow.destination, spine)]);
}

LinkLoads::Units LinkLoads::largest() const {
  return std::max(std::ranges::max(up_), std::ranges::max(down_));
}

std::uint64_t busiest_nic(const Fabric& fabric, std::span<const Flow> flows) {
  const std::size_t num_hosts = std::size_t{fabric.num_leaves} * fabric.hosts_per_leaf;
  std::vector<std::uint64_t> sent(num_hosts, 0), received(num_hosts, 0);
  for (const Flow& flow : flows) {
    sent[flow.source] += flow.bytes;
    received[flow.destination] += flow.bytes;
  }
  return std::max(std::ranges::max(sent), std::ranges::max(received));
}

}  // namespace cinch::rt
