// Bodies of check_plan.h but for those that concern order.
#include "runtime/plan/check_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cinch::rt {
namespace {

tl::unexpected<Error> fault(std::string what) {
  return fail(ErrorKind::InvalidArgument, "plan: " + std::move(what));
}

// Checks that no number of bytes overflows.
Status check_tensors(const Plan& plan) {
  constexpr std::int64_t kMostElems = (std::int64_t{1} << 32) - 1;
  for (const PlanTensor& tensor : plan.tensors) {
    const bool is_shape = tensor.rows >= 0 && tensor.cols >= 0 &&
                          (tensor.rows == 0 || tensor.cols <= kMostElems / tensor.rows);
    if (!is_shape) return fault(tensor.name + " has too many elements, or fewer than none");
    const auto& ends = tensor.part_ends;
    if (ends.empty()) continue;
    const bool are_parts = ends.size() == plan.ranks.size() && ends.front() >= 0 &&
                           ends.back() == tensor.num_elems() && std::ranges::is_sorted(ends);
    if (!are_parts) return fault(tensor.name + " is not covered by the parts of the ranks");
  }
  return Ok{};
}

// Sorted pieces of a tensor follow each other from its first element to its last.
Status check_pieces(const Plan& plan) {
  std::vector<std::vector<const Piece*>> of(plan.tensors.size());
  for (const Piece& piece : plan.pieces) {
    if (piece.tensor >= of.size()) return fault(fmt::format("there is no tensor {}", piece.tensor));
    of[piece.tensor].push_back(&piece);
  }
  for (std::size_t t = 0; t < of.size(); ++t) {
    std::ranges::sort(of[t], {}, [](const Piece* p) { return std::pair(p->first, p->num_elems); });
    const std::int64_t elems = plan.tensors[t].num_elems();
    std::int64_t next = 0;
    const auto follows = [&](const Piece* piece) {
      const bool is_next =
          piece->first == next && piece->num_elems >= 0 && piece->num_elems <= elems - next;
      if (is_next) next += piece->num_elems;
      return is_next;
    };
    const bool is_covered = std::ranges::all_of(of[t], follows) && next == elems && !of[t].empty();
    if (!is_covered) return fault(plan.tensors[t].name + " is not covered by its pieces");
  }
  return Ok{};
}

Status check_groups(const Plan& plan) {
  std::vector<int> uses(plan.pieces.size());
  for (const Group& group : plan.groups) {
    if (group.carries != kNoGroup) {
      // It has the pieces of the group whose sums it carries.
      const bool is_group = group.carries < plan.groups.size() &&
                            plan.groups[group.carries].carries == kNoGroup &&
                            plan.groups[group.carries].codec != kDense && group.codec != kDense;
      if (!is_group || plan.groups[group.carries].pieces != group.pieces)
        return fault("a group carries the sums of other pieces");
      continue;
    }
    for (const std::uint32_t piece : group.pieces) {
      if (piece >= uses.size()) return fault(fmt::format("there is no piece {}", piece));
      if (plan.tensors[plan.pieces[piece].tensor].codec != group.codec) {
        return fault(plan.tensors[plan.pieces[piece].tensor].name +
                     " is in a group of another codec");
      }
      ++uses[piece];
    }
  }
  if (std::ranges::any_of(uses, [](int n) { return n != 1; })) {
    return fault("a piece is not in one group");
  }
  return Ok{};
}

bool are_below(const std::vector<std::uint32_t>& indices, std::size_t limit) {
  return std::ranges::all_of(indices, [limit](std::uint32_t i) { return i < limit; });
}

// Does an exchange read and write the right number of slots?
bool has_exchange_slots(const Task& task, std::uint32_t rank, std::size_t world) {
  const std::size_t reads = task.reads.size(), writes = task.writes.size();
  switch (task.exchange) {
    case ExchangeKind::Send:
      return reads == 1 && writes == 0 && task.peer != rank;
    case ExchangeKind::Receive:
      return reads == 0 && writes == 1 && task.peer != rank;
    case ExchangeKind::AllReduce:
      return reads == 1 && writes == 1;
    case ExchangeKind::AllGather:
      return reads == 1 && writes == world;
    case ExchangeKind::AllToAll:
      return reads == world && writes == world;
    case ExchangeKind::Broadcast:
      return writes == 1 && reads == (task.peer == rank ? 1 : 0);
    case ExchangeKind::ReduceScatter:
      return reads == world && writes == 1;
  }
  return false;
}

bool has_slots(const Task& task, std::uint32_t rank, std::size_t world) {
  const std::size_t reads = task.reads.size(), writes = task.writes.size(),
                    groups = task.groups.size();
  switch (task.kind) {
    case TaskKind::Encode:
      return reads == 0 && writes == groups;
    case TaskKind::Decode:
      return reads == groups && writes == 0;
    case TaskKind::DecodeAdd:
      return reads == 1 && groups == 1 && writes == 0;
    case TaskKind::Spread:
      return groups == 1 && reads == 1 && writes >= 1;
    case TaskKind::Join:
      return groups == 1 && reads >= 2 && writes == 1;
    case TaskKind::Exchange:
      return task.peer < world && has_exchange_slots(task, rank, world);
    case TaskKind::Part:
      return groups == 1 && task.peer < world && (task.part > 0 || reads == 0);
    case TaskKind::Clear:
    case TaskKind::Add:
    case TaskKind::Scale:
    case TaskKind::Finish:
    case TaskKind::Synchronise:
    case TaskKind::Fetch:
    case TaskKind::Deliver:
      return reads == 0 && writes == 0;
  }
  return false;
}

// A task of values that lie on the CPUs runs there, and only such values are copied.
Status check_device(const Plan& plan, std::uint32_t rank, std::size_t index) {
  const Task& task = plan.ranks[rank].tasks[index];
  const bool copies = task.kind == TaskKind::Fetch || task.kind == TaskKind::Deliver;
  for (const std::uint32_t group : task.groups) {
    if (plan.groups[group].pieces.empty()) continue;
    const bool is_there = is_on_cpus(plan, group);
    if (is_there == task.on_cpus && (is_there || !copies)) continue;
    return task_fault(plan, rank, index, "is not on the device of its groups");
  }
  const bool meets = task.kind == TaskKind::Part || task.kind == TaskKind::Synchronise;
  if (!task.on_cpus || !meets) return Ok{};
  return task_fault(plan, rank, index, "runs on the device, as every `sync` does");
}

// Dense tensors must have no tasks of programs.
Status check_programs(const Plan& plan, std::uint32_t rank, std::size_t index) {
  const Task& task = plan.ranks[rank].tasks[index];
  const bool is_of_payloads = task.kind == TaskKind::Spread || task.kind == TaskKind::Join;
  if (is_of_payloads && plan.groups[task.groups[0]].codec == kDense) {
    return task_fault(plan, rank, index, "there are no payloads of f32");
  }
  if (task.kind == TaskKind::Scale && (!std::isfinite(task.factor) || task.factor <= 0)) {
    return task_fault(plan, rank, index, "its factor is no number above 0");
  }
  if (task.kind != TaskKind::Part) return Ok{};
  const Group& group = plan.groups[task.groups[0]];
  if (group.codec == kDense || group.pieces.size() != 1) {
    return task_fault(plan, rank, index, "is not of one piece with a program");
  }
  return Ok{};
}

Status check_slots(const Plan& plan, std::uint32_t rank) {
  const RankPlan& own = plan.ranks[rank];
  for (std::size_t s = 0; s < own.slots.size(); ++s) {
    const Slot& slot = own.slots[s];
    const bool is_inside =
        slot.offset <= own.wire_bytes && slot.capacity <= own.wire_bytes - slot.offset;
    if (!is_inside) return fault(fmt::format("rank {}: slot {} is not in the wire", rank, s));
    if (slot.length == kNoSlot) continue;
    if (slot.length >= own.slots.size() || own.slots[slot.length].capacity != 8) {
      return fault(fmt::format("rank {}: slot {} has no place for its length", rank, s));
    }
  }
  return Ok{};
}

Status check_order(const Plan& plan, std::uint32_t rank) {
  CINCH_TRY(check_protocols(plan, rank));
  return check_accesses(plan, rank);
}

}  // namespace

tl::unexpected<Error> task_fault(const Plan& plan, std::uint32_t rank, std::size_t task,
                                 const std::string& what) {
  return fault(fmt::format("rank {}, task {} ({}): {}", rank, task,
                           describe_task(plan, plan.ranks[rank].tasks[task]), what));
}

Status check_shape(const Plan& plan) {
  if (plan.ranks.empty()) return fault("it has no ranks");
  CINCH_TRY(check_tensors(plan));
  CINCH_TRY(check_pieces(plan));
  CINCH_TRY(check_groups(plan));
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
    CINCH_TRY(check_slots(plan, rank));
    const RankPlan& own = plan.ranks[rank];
    for (std::size_t t = 0; t < own.tasks.size(); ++t) {
      const Task& task = own.tasks[t];
      if (!are_below(task.groups, plan.groups.size())) {
        return fault(fmt::format("rank {}, task {}: no such group", rank, t));
      }
      if (!are_below(task.reads, own.slots.size()) || !are_below(task.writes, own.slots.size())) {
        return task_fault(plan, rank, t, "no such slot");
      }
      if (!are_below(task.after, t)) return task_fault(plan, rank, t, "comes after a later task");
      if (!has_slots(task, rank, plan.world())) {
        return task_fault(plan, rank, t, "another number of slots or no such rank");
      }
      CINCH_TRY(check_programs(plan, rank, t));
      CINCH_TRY(check_device(plan, rank, t));
    }
  }
  return Ok{};
}

Status check_plan(const Plan& plan) {
  CINCH_TRY(check_shape(plan));
  for (std::uint32_t rank = 0; rank < plan.world(); ++rank) CINCH_TRY(check_order(plan, rank));
  return check_meetings(plan);
}

Status check_rank(const Plan& plan, std::uint32_t rank) {
  CINCH_TRY(check_shape(plan));
  return check_order(plan, rank);
}

namespace {

bool makes_partial_sums(const Task& task) {
  if (task.kind == TaskKind::Add) return true;
  if (task.kind != TaskKind::Encode) return false;
  return task.site == Site::Hop || (task.is_dense && task.from == Value::Gradient);
}

// Finds what a rank does that the programs of its groups do not take.
class RefusalSearch {
 public:
  RefusalSearch(const Plan& plan, std::span<const SumRules> rules) : plan_(plan), rules_(rules) {}

  std::optional<PlanRefusal> find(const RankPlan& rank) {
    is_decoded_.assign(plan_.groups.size(), false);
    for (const Task& task : rank.tasks) {
      for (const std::uint32_t group : task.groups) {
        if (const auto refusal = look_at(task, group)) return refusal;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<PlanRefusal> look_at(const Task& task, std::uint32_t group) {
    const std::uint32_t values = group_of_values(plan_, group), codec = plan_.groups[values].codec;
    if (codec == kDense) return std::nullopt;
    const bool adds = task.kind == TaskKind::DecodeAdd && !task.is_dense;
    if (adds) is_decoded_[values] = true;
    const SumRules& rules = rules_[codec];
    if (makes_partial_sums(task) && !rules.takes_partial_sums) {
      return PlanRefusal{codec, PlanRefusal::Why::PartialSums};
    }
    // A gradient that no program has seen is not what another rank's payload decodes to.
    if (task.kind == TaskKind::Add && rules.carrier != CarrierKind::Itself && !task.is_dense) {
      return PlanRefusal{codec, PlanRefusal::Why::Carrier};
    }
    const bool encodes_itself = task.kind == TaskKind::Encode && !task.is_dense && group == values;
    const bool is_of_sum = task.site == Site::Owner || task.site == Site::Return ||
                           (task.site == Site::Hop && is_decoded_[values]);
    if (encodes_itself && is_of_sum && rules.carrier != CarrierKind::Itself) {
      return PlanRefusal{codec, PlanRefusal::Why::Carrier};
    }
    return std::nullopt;
  }

  const Plan& plan_;
  std::span<const SumRules> rules_;
  std::vector<bool> is_decoded_;  // by group: has the sum what a payload decoded to?
};

}  // namespace

std::optional<PlanRefusal> find_refusal(const Plan& plan, std::span<const SumRules> rules) {
  RefusalSearch search(plan, rules);
  for (const RankPlan& rank : plan.ranks) {
    if (const auto refusal = search.find(rank)) return refusal;
  }
  return std::nullopt;
}

}  // namespace cinch::rt
