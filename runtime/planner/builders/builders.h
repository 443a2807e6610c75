// The plans of planner.h, one function each. Each function writes the tasks of one rank for one
// bundle.
#pragma once

#include <map>
#include <utility>

#include "runtime/planner/planner.h"

namespace cinch::rt {
// Writes one rank's tasks in an order in which they could run one by one, and finds out which tasks
// depend on which.

class RankBuilder {
 public:
  RankBuilder(const Plan& plan, RankPlan& to) : plan_(plan), to_(to) {}

  /// Adds a slot: bytes of the wire that no other slot has.
  std::uint32_t add_slot(std::uint64_t capacity);
  /// Adds a slot for a message, with a place for its length.
  std::uint32_t add_sized_slot(std::uint64_t capacity);

  /// Slots for several pieces side by side: one for each, and one over all of them.
  struct JointSlot {
    std::uint32_t all = 0;
    std::vector<std::uint32_t> parts;
  };
  JointSlot add_joint_slot(const std::vector<std::uint64_t>& capacities);

  void clear(std::uint32_t group);
  void encode(Site site, Value from, const std::vector<std::uint32_t>& groups,
              const std::vector<std::uint32_t>& slots);
  /// `site`: the site that encoded the payloads.
  void decode(Site site, const std::vector<std::uint32_t>& groups,
              const std::vector<std::uint32_t>& slots, Value to);
  void decode_add(Site site, std::uint32_t group, std::uint32_t slot);
  /// The next three do the same in plain f32, whatever codec the group has.
  void encode_dense(Value from, std::uint32_t group, std::uint32_t slot, Site site = Site::Worker);
  void decode_dense(std::uint32_t group, std::uint32_t slot, Value to);
  void decode_add_dense(std::uint32_t group, std::uint32_t slot);
  void add_gradient(std::uint32_t group);
  void scale(std::uint32_t group, float factor);
  void finish(std::uint32_t group, Value to);
  void synchronise(std::uint32_t group);
  /// Adds a task of kind Part, or an exchange of whole slots; only its dependencies are filled in,
  /// and the copies of values that lie on the CPUs (PlanTensor::on_cpus).
  void add(Task task);
  void spread(std::uint32_t group, std::uint32_t payloads,
              const std::vector<std::uint32_t>& arrays);
  void join(std::uint32_t group, std::uint32_t payloads, const std::vector<std::uint32_t>& arrays,
            std::uint32_t result);

  /// `groups`: the groups that the exchange carries, for people. If the slots have lengths, these
  /// are exchanged first.
  void all_gather(const std::vector<std::uint32_t>& groups, std::uint32_t own,
                  const std::vector<std::uint32_t>& all);
  void all_to_all(const std::vector<std::uint32_t>& groups, const std::vector<std::uint32_t>& sent,
                  const std::vector<std::uint32_t>& received);
  void all_reduce(std::uint32_t group, std::uint32_t slot, DType dtype, RankReduction reduction);
  /// Messages up to the next call share a round (Task::round); the payloads of sized slots come a
  /// round behind their lengths. All ranks of a bundle begin the same rounds.
  void begin_round(bool is_sized);
  void send(std::uint32_t group, std::uint32_t slot, std::uint32_t to);
  void receive(std::uint32_t group, std::uint32_t slot, std::uint32_t from);

 private:
  using Slots = std::vector<std::uint32_t>;
  // The tasks so far that used certain bytes or a value.
  struct Past {
    std::vector<std::uint32_t> readers;  // since the last writer
    std::uint32_t writer = 0;
    bool is_written = false;
  };

  /// Adds the task itself.
  void append(Task task);
  /// Copies gradients that the task reads and no task before it has copied.
  void fetch_for(const Task& task);
  /// The lengths of sized slots are exchanged first.
  void add_exchange(Task task, const Slots& reads, const Slots& writes);
  void set_round(Task& task) const;
  bool is_sized(std::uint32_t slot) const { return to_.slots[slot].length != kNoSlot; }
  Slots lengths(const Slots& slots) const;
  void order(Task& task, Past& past, bool is_write) const;
  void order_values(Task& task);
  void order_value(Task& task, std::uint32_t group, Value value, bool is_write);
  void order_slots(Task& task);

  /// The slots under a joint slot, or the slot itself.
  Slots parts_of(std::uint32_t slot) const;

  const Plan& plan_;
  RankPlan& to_;
  std::uint32_t round_ = 0, next_round_ = 1;  // of messages
  std::map<std::uint32_t, Slots> joint_;      // by joint slot: its parts
  std::map<std::uint32_t, Past> slots_;
  std::vector<bool> is_fetched_;  // by group
  // By group: calls of a program with a `sync`
  std::map<std::uint32_t, Past> calls_;
  std::map<std::pair<std::uint32_t, bool>, Past> values_;  // by group; true: the group's sum
};

// Decides which elements are encoded together: pieces, groups, and bundles of groups.

/// Groups that are synchronised at once: one for each owner, which may be empty. For programs with
/// a `sync`: one for each tensor.
struct Bundle {
  std::vector<std::uint32_t> groups;
  /// By group: the group that carries its sums (Group::carries). Empty: see BundleContext.
  std::vector<std::uint32_t> carriers = {};
  std::uint32_t route = 0;
};

/// A route, with how many owners the bundles of its plan have.
struct LaidRoute {
  PlanRoute route;
  std::uint32_t num_owners = 1;
  bool are_all_ranks = false;
};
/// Of the request's routes: the tensor's.
std::uint32_t route_of(const PlanRequest& request, std::uint32_t tensor);

/// Sets the plan's pieces and groups. A tensor that may be cut and is larger than a bundle makes
/// several bundles. Smaller tensors of one codec, route and priority share a bundle, in which each
/// small one has one owner. The size of bundles of programs with a `sync` is measured in the bytes
/// that their collectives send. Bundles are in the order of their last tensors.
/// `wholes`: takes the tensors that one of several owners has whole; may be null.
Result<std::vector<Bundle>> lay_out(const PlanRequest& request, std::span<const LaidRoute> routes,
                                    Plan& plan, std::vector<WholeTensor>* wholes = nullptr);

/// Returns the collectives of a `sync` whose codec knows them; none if there are no elements.
Result<std::vector<SyncRound>> rounds_of(const CodecFacts& codec, const PlanTensor& tensor);

/// The shape that a codec is asked about: that of the whole tensor, or a vector.
struct PieceShape {
  std::int64_t rows = 0, cols = 1;
};
PieceShape shape_of(const PlanTensor& tensor, std::int64_t num_elems);

/// Adds the groups that carry the sums of bundles whose codecs have a carrier of their own.
Status add_carriers(const PlanRequest& request, Plan& plan, std::span<Bundle* const> bundles);

/// The largest size of the group's message in bytes.
std::uint64_t message_bytes(const Plan& plan, std::uint32_t group);
/// The size of the same elements as plain f32.
std::uint64_t dense_bytes(const Plan& plan, std::uint32_t group);

struct BundleContext {
  const Plan& plan;
  const Bundle& bundle;
  RankBuilder& to;
  std::uint32_t rank = 0, world = 1;
  std::vector<std::uint32_t> servers;   // for ps: by owner
  bool is_sized = false;                // messages have lengths
  std::uint32_t ranks_per_machine = 1;  // for hierarchical, as the fields below
  ExchangeOption option;
  std::vector<SumArray> sum_arrays;  // for allreduce: the group's arrays; none: plain f32
  // How sums travel that are encoded again: by the bundle's carriers, in f32, or else by the
  // groups' own codec.
  bool has_exact_sums = false;
  bool are_sums_sized = false;  // messages of sums have lengths
  /// What ranks multiply gradients by before others add to them, where fields are too narrow for
  /// the sum; else 1.
  float narrowing = 1;

  /// Do groups carry their own sums? Then ranks may add a gradient that was never encoded.
  bool carries_itself() const { return !has_exact_sums && bundle.carriers.empty(); }
  /// The group that payloads of the group's sums belong to.
  std::uint32_t sum_group(std::uint32_t group) const;

  // The same as the calls of RankBuilder and add_slot, for sums.
  std::uint32_t add_sum_slot(std::uint32_t group) const;
  std::vector<std::uint32_t> sum_groups(const std::vector<std::uint32_t>& groups) const;
  void encode_sums(Site site, const std::vector<std::uint32_t>& groups,
                   const std::vector<std::uint32_t>& slots) const;
  void decode_sums(Site site, const std::vector<std::uint32_t>& groups,
                   const std::vector<std::uint32_t>& slots, Value to) const;
  void decode_add_sum(Site site, std::uint32_t group, std::uint32_t slot) const;
  /// Encodes this rank's gradient for a sum on its way.
  void encode_own(std::uint32_t group, std::uint32_t slot) const;
  /// Begins a sum with this rank's gradient: as it is, or as its payload decodes.
  void begin_sum(std::uint32_t group) const;
  void finish_sum(std::uint32_t group, Value to_value) const;

  std::uint32_t add_slot(std::uint32_t group) const {
    const std::uint64_t bytes = message_bytes(plan, group);
    return is_sized ? to.add_sized_slot(bytes) : to.add_slot(bytes);
  }
};

void build_allreduce(const BundleContext& context);
void build_summed(const BundleContext& context);
void build_allgather(const BundleContext& context);
void build_two_shot(const BundleContext& context);
void build_reduce_scatter(const BundleContext& context);
void build_ring(const BundleContext& context);
void build_ps(const BundleContext& context);
void build_tree(const BundleContext& context);
void build_hierarchical(const BundleContext& context);
/// The `sync` of a group's one piece, and its collectives.
struct Protocol {
  std::uint32_t group = 0;
  std::vector<SyncRound> rounds;
};
/// Writes the protocols in parts between collectives, which the protocols of a bundle share.
void build_protocols(const BundleContext& context, const std::vector<Protocol>& protocols);

}  // namespace cinch::rt
