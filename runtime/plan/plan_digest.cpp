// Digests of plans; see plan_text.h.
#include "runtime/plan/plan_text.h"

#include <bit>

#include "runtime/core/hash.h"

namespace cinch::rt {
namespace {

class PlanHasher {
 public:
  void add(const Plan& plan) {
    hasher_.add(plan.name);
    add_all(plan.tensors);
    add_all(plan.pieces);
    add_all(plan.groups);
    add_numbers(plan.ranks.size());
    if (!plan.ranks.empty()) add(plan.ranks[0]);
  }
  std::uint64_t finish() const { return hasher_.finish64(); }

 private:
  template <typename... Numbers>
  void add_numbers(Numbers... numbers) {
    (hasher_.add(static_cast<std::uint64_t>(numbers)), ...);
  }
  template <typename T>
  void add_all(const std::vector<T>& all) {
    add_numbers(all.size());
    for (const T& each : all) add(each);
  }
  void add(std::uint32_t index) { add_numbers(index); }
  void add(const PlanTensor& tensor) {
    hasher_.add(tensor.name);
    add_numbers(tensor.rows, tensor.cols, tensor.codec, tensor.priority, tensor.part_ends.size());
    for (const std::int64_t end : tensor.part_ends) add_numbers(end);
  }
  void add(const Piece& piece) {
    add_numbers(piece.tensor, piece.number, piece.first, piece.num_elems, piece.bound_bytes,
                piece.carried_bytes);
  }
  void add(const Group& group) {
    add_numbers(group.codec, group.carries, group.bundle);
    add_all(group.pieces);
  }
  void add(const Slot& slot) { add_numbers(slot.offset, slot.capacity, slot.length); }
  void add(const Task& task) {
    add_numbers(task.kind, task.site, task.from, task.to, task.is_dense, task.exchange, task.peer,
                task.reduction, task.dtype.kind, task.dtype.bits, task.is_sized, task.part,
                task.round, std::bit_cast<std::uint32_t>(task.factor));
    add_all(task.groups);
    add_all(task.reads);
    add_all(task.writes);
    add_all(task.after);
  }
  void add(const RankPlan& rank) {
    add_all(rank.slots);
    add_all(rank.tasks);
    add_numbers(rank.wire_bytes);
  }

  Hasher hasher_;
};

}  // namespace

std::uint64_t plan_digest(const Plan& plan) {
  PlanHasher hasher;
  hasher.add(plan);
  return hasher.finish();
}

}  // namespace cinch::rt
