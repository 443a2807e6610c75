// A fabric of leaves and spines, flows between its hosts, pieces that flows are cut into, and what
// links carry then.
//
// Every host has one link to its leaf, and every leaf one link to every spine, all in both
// directions. A flow between two leaves crosses one spine; a flow within a leaf crosses none.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// The link between a leaf and a spine, in both directions.
struct SpineLink {
  std::uint32_t leaf = 0, spine = 0;
};

struct Fabric {
  std::uint32_t num_leaves = 0;
  std::uint32_t hosts_per_leaf = 0;  // hosts are numbered leaf by leaf
  std::uint32_t num_spines = 0;
  /// Bytes per second, or any other unit: only the ratio counts.
  std::uint64_t host_speed = 1, link_speed = 1;
  std::vector<std::uint32_t> down_spines = {};
  std::vector<SpineLink> down_links = {};

  std::uint32_t leaf_of(std::uint32_t host) const { return host / hosts_per_leaf; }
};

struct Flow {
  std::uint32_t source = 0, destination = 0;  // different hosts
  std::uint64_t bytes = 0;
};

/// A share of a flow that takes one way: from `begin` to `end` of `parts` equal parts.
struct FlowPiece {
  std::uint32_t flow = 0;
  std::uint32_t spine = 0;  // kWithinLeaf: none
  std::uint32_t begin = 0, end = 1, parts = 1;

  friend bool operator==(const FlowPiece&, const FlowPiece&) = default;
};
inline constexpr std::uint32_t kWithinLeaf = UINT32_MAX;

/// The bytes of a flow that a piece carries, for transports, which send whole bytes. The pieces of
/// a flow carry each of its bytes once.
struct PieceRange {
  std::uint64_t begin = 0, end = 0;
};
PieceRange bytes_of(const FlowPiece& piece, std::uint64_t flow_bytes);

/// Errors: InvalidArgument ("flow 3 goes from host 5 to itself"), OutOfRange ("flow 3: host 300 of
/// 256"), Overflow where all flows together have 2^63 bytes or more.
Status check_flows(const Fabric& fabric, std::span<const Flow> flows);

/// The spines that are up and whose links are up. The fabric must outlive it.
class UsableSpines {
 public:
  /// Errors: InvalidArgument ("a fabric without spines"), OutOfRange ("down_links[0]: leaf 9 of
  /// 8").
  static Result<UsableSpines> of(const Fabric& fabric);

  /// Those that at least two leaves reach, in ascending order.
  std::span<const std::uint32_t> all() const { return all_; }
  bool reaches(std::uint32_t leaf, std::uint32_t spine) const {
    return is_up_[std::size_t{leaf} * num_spines_ + spine];
  }
  /// Those that both leaves reach, in ascending order. Valid until the next call.
  /// Errors: Unavailable ("no spine is left between leaves 2 and 5").
  Result<std::span<const std::uint32_t>> between(std::uint32_t leaf, std::uint32_t other);

 private:
  explicit UsableSpines(const Fabric& fabric);

  std::uint32_t num_spines_;
  std::vector<bool> is_up_;        // by leaf and spine
  std::vector<bool> reaches_all_;  // by leaf: each spine of all_
  std::vector<std::uint32_t> all_;
  std::vector<std::uint32_t> between_;
};

/// What the links between leaves and spines carry. Rules also add up loads while they choose
/// spines.
class LinkLoads {
 public:
  /// In units of 1 / `units_per_byte` bytes, of which the flows have less than 2^127 in all.
  using Units = unsigned __int128;

  /// Links without load, with units that fit all pieces.
  /// Errors: Overflow where no 64-bit number divides by the parts of all pieces.
  static Result<LinkLoads> for_pieces(const Fabric& fabric, std::span<const FlowPiece> pieces);

  /// Does nothing for pieces within a leaf.
  void add(const Flow& flow, const FlowPiece& piece);
  /// Of the busier link of the two that a flow takes over a spine.
  Units busier(const Flow& flow, std::uint32_t spine) const;
  Units largest() const;
  std::uint64_t units_per_byte() const { return units_per_byte_; }

 private:
  LinkLoads(const Fabric& fabric, std::uint64_t units_per_byte);
  std::size_t link(std::uint32_t host, std::uint32_t spine) const {
    return std::size_t{host / hosts_per_leaf_} * num_spines_ + spine;
  }

  std::uint32_t hosts_per_leaf_, num_spines_;
  std::uint64_t units_per_byte_;
  std::vector<Units> up_, down_;  // by leaf and spine
};

/// The most bytes that a host sends, or receives, flows within leaves included.
std::uint64_t busiest_nic(const Fabric& fabric, std::span<const Flow> flows);

}  // namespace cinch::rt
