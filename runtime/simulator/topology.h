// A fabric of ranks: machines under leaves, leaves under spines, sites joined by links of their
// own. Read from JSON that people write (docs/simulator.md has its entries).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/simulator/flow_network.h"

namespace cinch::rt {

/// A link in one direction.
struct FabricLink {
  std::string name;  // "rank3 out", "leaf2-spine1 up", "site0-site1"
  std::string tier;  // "machine", "nic", "leaf", "site"
  double bytes_per_second = 0;
};

struct FabricRoute {
  FlowPath path;
  Picoseconds latency = 0;
};

class Topology {
 public:
  /// What a file says; speeds in bytes a second, times in picoseconds.
  struct Port {
    double bytes_per_second = 0;
    Picoseconds latency = 0;
  };
  struct Join {
    std::uint32_t from = 0, to = 0;  // sites
    Port port;
    /// What one stream gets at most; 0: all of it. From loss, by Mathis et al., CCR 1997: 1.22 *
    /// segment / (round trip * sqrt(loss)).
    double most_of_stream = 0;
  };
  struct Change {
    std::string link;  // its name, without a direction
    double share = 1;  // of its speed; 0: it is down
  };
  struct Shape {
    std::uint32_t ranks_per_machine = 1, machines_per_leaf = 1, spines = 1;
    Port machine, nic, uplink;
    Picoseconds message = 0;              // what each message costs the rank that sends it
    std::vector<std::uint32_t> machines;  // by site
    std::vector<Join> joins;
    std::vector<Change> changes;
  };

  /// Errors: InvalidArgument (machines that do not fill their leaves, links that are not there, a
  /// leaf without any spine).
  static Result<Topology> make(Shape shape);

  const Shape& shape() const { return shape_; }
  std::uint32_t num_ranks() const { return num_ranks_; }
  const std::vector<FabricLink>& links() const { return links_; }
  std::uint32_t leaf_of(std::uint32_t rank) const;
  std::uint32_t site_of(std::uint32_t rank) const;
  std::uint32_t machine_of(std::uint32_t rank) const { return rank / shape_.ranks_per_machine; }

  /// The way of bytes between two ranks. Between leaves, all spines that both leaves reach carry
  /// their share, as ideal spraying does. Errors: InvalidArgument (no spine that both reach, no
  /// link between their sites, a link that is down and has no other beside it).
  Result<FabricRoute> route(std::uint32_t from, std::uint32_t to) const;

 private:
  explicit Topology(Shape shape) : shape_(std::move(shape)) {}
  Status add_links();
  /// Also over links that are down.
  Result<FabricRoute> find_route(std::uint32_t from, std::uint32_t to) const;
  Status apply(const Change& change);
  std::uint32_t num_leaves() const;

  Shape shape_;
  std::uint32_t num_ranks_ = 0;
  std::vector<FabricLink> links_;
  std::vector<std::uint32_t> first_leaf_, first_rank_;  // by site, and one behind the last
  std::uint32_t first_nic_ = 0, first_uplink_ = 0, first_join_ = 0;
};

/// Errors: CorruptFile (with the place in the text), VersionMismatch, those of Topology::make.
Result<Topology> topology_from_json(std::string_view text);

}  // namespace cinch::rt
