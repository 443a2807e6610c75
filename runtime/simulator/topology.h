// A fabric of ranks: machines under leaves, leaves under spines, pods of these under a core, sites
// joined by links of their own. Read from JSON that people write (docs/simulator.md has its
// entries), or from a file of htsim.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/simulator/flow_network.h"

namespace cinch::rt {

/// Of links: between ranks of a machine, of ranks to leaves, of leaves to spines, of spines to the
/// core, between sites.
enum class Tier : std::uint8_t { Machine, Nic, Leaf, Core, Site };
const char* tier_name(Tier tier);

struct FabricRoute {
  FlowPath path;
  Picoseconds latency = 0;
};

/// A spine, and the share of a flow that goes over it.
struct SpineShare {
  std::uint32_t spine = 0;
  double share = 1;
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
    /// With a third tier: leaves of a pod, which has `spines` of its own. 0: all of a site.
    std::uint32_t leaves_per_pod = 0;
    Port machine, nic, uplink;
    Port core;                            // of all links of a spine to the core
    Picoseconds message = 0;              // what each message costs the rank that sends it
    std::vector<std::uint32_t> machines;  // by site
    std::vector<Join> joins;
    std::vector<Change> changes;
  };
  /// Where a link is. The first of two leads away from ranks, the second back.
  struct Place {
    Tier tier = Tier::Machine;
    std::uint32_t index = 0;  // rank, leaf, pod, or join
    std::uint32_t spine = 0;  // of Tier::Leaf and Tier::Core
    bool is_second = false;
  };

  /// Errors: InvalidArgument (machines that do not fill their leaves, or leaves their pods, links
  /// that are not there, more than a simulator holds).
  static Result<Topology> make(Shape shape);

  const Shape& shape() const { return shape_; }
  std::uint32_t num_ranks() const { return num_ranks_; }
  /// Links have one direction.
  std::uint32_t num_links() const { return static_cast<std::uint32_t>(speeds_.size()); }
  double speed(std::uint32_t link) const { return speeds_[link]; }  // bytes a second
  Place place_of(std::uint32_t link) const;
  /// "rank3 out", "rank3 in its machine in", "leaf2-spine1 up", "pod1-spine0 down", "site0-site1
  /// out"
  std::string name_of(std::uint32_t link) const;
  std::uint32_t first_join_link() const { return first_join_; }

  std::uint32_t leaf_of(std::uint32_t rank) const;
  std::uint32_t pod_of_leaf(std::uint32_t leaf) const { return pod_of_leaf_[leaf]; }
  std::uint32_t site_of(std::uint32_t rank) const;
  std::uint32_t machine_of(std::uint32_t rank) const { return rank / shape_.ranks_per_machine; }
  /// The first rank, and the one behind the last.
  std::pair<std::uint32_t, std::uint32_t> ranks_of_leaf(std::uint32_t leaf) const;
  std::pair<std::uint32_t, std::uint32_t> ranks_of_pod(std::uint32_t pod) const;

  /// Out and in within its machine, out and in of its NIC.
  std::array<double, 4> speeds_of_rank(std::uint32_t rank) const;
  /// By spine: up and down.
  std::vector<double> speeds_of_leaf(std::uint32_t leaf) const;
  std::vector<double> speeds_of_pod(std::uint32_t pod) const;
  /// Has no change touched a link of leaves, spines or the core?
  bool are_uplinks_alike() const { return are_uplinks_alike_; }

  /// The way of bytes between two ranks. Between leaves, all spines that both leaves reach carry
  /// their share, as ideal spraying does; between pods, those whose links to the core are up.
  /// Errors: InvalidArgument (no spine that both reach, no link between their sites, a link that is
  /// down and has no other beside it).
  /// `spines`: instead of all that both reach.
  Result<FabricRoute> route(std::uint32_t from, std::uint32_t to,
                            std::span<const SpineShare> spines = {}) const;

 private:
  explicit Topology(Shape shape) : shape_(std::move(shape)) {}
  Status count_ranks();
  void add_links();
  /// Also over links that are down.
  Result<FabricRoute> find_route(std::uint32_t from, std::uint32_t to,
                                 std::span<const SpineShare> spines) const;
  Status add_join(std::uint32_t from_site, std::uint32_t to_site, FabricRoute& route) const;
  Status add_spines(std::uint32_t from_leaf, std::uint32_t to_leaf,
                    std::span<const SpineShare> given, FabricRoute& route) const;
  Status apply(const Change& change);
  std::uint32_t num_leaves() const { return first_leaf_.back(); }
  std::uint32_t num_pods() const { return pod_of_leaf_.empty() ? 0 : pod_of_leaf_.back() + 1; }
  std::uint32_t uplink(std::uint32_t leaf, std::uint32_t spine) const {
    return first_uplink_ + 2 * (leaf * shape_.spines + spine);
  }
  std::uint32_t core_link(std::uint32_t pod, std::uint32_t spine) const {
    return first_core_ + 2 * (pod * shape_.spines + spine);
  }

  Shape shape_;
  std::uint32_t num_ranks_ = 0;
  bool are_uplinks_alike_ = true;
  std::vector<double> speeds_;                          // by link
  std::vector<std::uint32_t> first_leaf_, first_rank_;  // by site, and one behind the last
  std::vector<std::uint32_t> pod_of_leaf_;
  std::uint32_t first_nic_ = 0, first_uplink_ = 0, first_core_ = 0, first_join_ = 0;
};

/// Errors: CorruptFile (with the place in the text), VersionMismatch, those of Topology::make.
Result<Topology> topology_from_json(std::string_view text);

/// A fat tree of htsim: hosts are machines of one rank (topology_htsim.cpp has its words). Errors:
/// CorruptFile (with the line), those of Topology::make.
Result<Topology> topology_from_htsim(std::string_view text);

/// JSON if the text begins so, else htsim's.
Result<Topology> topology_from_text(std::string_view text);

}  // namespace cinch::rt
