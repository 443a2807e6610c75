// Which ranks of a fabric behave alike.
//
// Ranks are alike if they have the same key and links, and see ranks of every class as often on
// their machine, under their leaf, in their site and elsewhere. Links of alike ranks and leaves
// then carry the same at all times, so one of them is looked at (an equitable partition: Godsil and
// Royle, Algebraic Graph Theory, 2001, section 9.3).
#pragma once
#include <array>
#include <memory>
#include <optional>

#include "runtime/planner/simulation/stand_ins.h"
#include "runtime/simulator/topology.h"

namespace cinch::rt {

class RankClasses {
 public:
  /// Every rank for itself.
  static RankClasses each(const Topology& topology, std::uint32_t world);
  /// `keys`: by rank of the world; ranks with different ones are not alike. With `are_machines`,
  /// ranks of a machine are never alike, and machines are.
  static RankClasses alike(const Topology& topology, const std::vector<std::uint32_t>& keys,
                           bool are_machines);
  /// Of ranks that send to the next one, and the last to the first: rank r is of class r modulo the
  /// number of classes. That is the world where ranks, or leaves, differ.
  static RankClasses circle(const Topology& topology, const std::vector<std::uint32_t>& keys);

  std::uint32_t world() const { return static_cast<std::uint32_t>(class_of_.size()); }
  std::uint32_t num_classes() const { return static_cast<std::uint32_t>(members_.size()); }
  std::uint32_t class_of(std::uint32_t rank) const { return class_of_[rank]; }
  /// In ascending order.
  const std::vector<std::uint32_t>& members(std::uint32_t rank_class) const {
    return members_[rank_class];
  }
  /// Classes of leaves, or of pods.
  struct Groups {
    std::vector<std::uint32_t> class_of, first, size;  // by group; by class
    std::uint32_t num_classes() const { return static_cast<std::uint32_t>(first.size()); }
  };
  const Groups& leaves() const { return leaves_; }
  const Groups& pods() const { return pods_; }

  /// For PlanRequest and CostInputs; not of `each`.
  std::shared_ptr<const StandIns> stand_ins() const;

  /// The ranks of a class as a rank of another one sees them: how many are as far, and one of them.
  struct Seen {
    std::uint32_t count = 0, from = 0, to = 0;
  };
  enum class Distance : std::uint8_t { Machine, Leaf, Pod, Site, Far };
  /// By Distance. The rank itself is not among them.
  std::array<Seen, 5> seen(std::uint32_t from, std::uint32_t to) const;

 private:
  RankClasses(const Topology& topology, std::uint32_t world);
  void set_classes(std::vector<std::uint32_t> colours, std::uint32_t ranks_per_unit);
  static Groups groups_of(const std::vector<std::uint32_t>& colours);
  std::uint32_t last_leaf() const { return topology_->leaf_of(world() - 1); }
  /// First and behind the last, within the world.
  std::pair<std::uint32_t, std::uint32_t> machine_around(std::uint32_t rank) const;
  std::pair<std::uint32_t, std::uint32_t> leaf_around(std::uint32_t rank) const;
  std::pair<std::uint32_t, std::uint32_t> pod_around(std::uint32_t rank) const;

  const Topology* topology_;
  std::uint32_t ranks_per_unit_ = 1;
  bool is_circle_ = false;
  std::vector<std::uint32_t> class_of_;
  std::vector<std::vector<std::uint32_t>> members_;
  Groups leaves_, pods_;
};

}  // namespace cinch::rt
