// Writes one rank's tasks in an order in which they could run one by one, and finds out which tasks
// depend on which.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"

namespace cinch::rt {

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
  /// Adds a task of kind Part, or an exchange of whole slots; only its dependencies are filled in.
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

  Task make(TaskKind kind, const std::vector<std::uint32_t>& groups) const;
  Task make_exchange(ExchangeKind kind, const std::vector<std::uint32_t>& groups) const;
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
  // By group: calls of a program with a `sync`
  std::map<std::uint32_t, Past> calls_;
  std::map<std::pair<std::uint32_t, bool>, Past> values_;  // by group; true: the group's sum
};

}  // namespace cinch::rt
