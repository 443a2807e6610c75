// Checks the parts of a `sync`: they follow each other, with their collective in between.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "runtime/plan/check_plan.h"

namespace cinch::rt {
namespace {

using Slots = std::vector<std::uint32_t>;

class ProtocolCheck {
 public:
  ProtocolCheck(const Plan& plan, std::uint32_t rank)
      : plan_(plan), own_(plan.ranks[rank]), rank_(rank) {}

  Status run() {
    for (std::size_t t = 0; t < own_.tasks.size(); ++t) {
      if (own_.tasks[t].kind != TaskKind::Part) continue;
      CINCH_TRY(check_part(t));
    }
    for (const auto& [group, last] : last_) {
      if (own_.tasks[last].is_last_part()) continue;
      return task_fault(plan_, rank_, last, "is not followed by the next part");
    }
    return Ok{};
  }

 private:
  Status check_part(std::size_t index) {
    const Task& task = own_.tasks[index];
    const auto before = last_.find(task.groups[0]);
    const bool is_first = before == last_.end();
    const bool is_next = is_first ? task.part == 0
                                  : task.part == own_.tasks[before->second].part + 1 &&
                                        !own_.tasks[before->second].is_last_part();
    if (!is_next) return task_fault(plan_, rank_, index, "is not the next part");
    if (task.is_last_part() && !task.writes.empty()) {
      return task_fault(plan_, rank_, index,
                        "is the last part, and writes values that nothing sends");
    }
    if (!is_first && !meet(own_.tasks[before->second], task)) {
      return task_fault(plan_, rank_, index,
                        "reads values that the part before it does not ask for");
    }
    last_[task.groups[0]] = index;
    return Ok{};
  }

  // Does the collective that one part asks for produce what the next one reads?
  bool meet(const Task& part, const Task& next) const {
    const auto does_collective = [&](const Task& task) {
      return task.kind == TaskKind::Exchange && !task.is_sized && task.exchange == part.exchange &&
             task.reduction == part.reduction && task.dtype == part.dtype &&
             task.peer == part.peer &&
             std::ranges::find(task.groups, part.groups[0]) != task.groups.end() &&
             lie_in(part.writes, task.reads) && lie_in(next.reads, task.writes);
    };
    return std::ranges::any_of(own_.tasks, does_collective);
  }

  // Does each slot lie within the exchange's slot at the same index?
  bool lie_in(const Slots& parts, const Slots& whole) const {
    return std::ranges::equal(parts, whole, [this](std::uint32_t a, std::uint32_t b) {
      const Slot &part = own_.slots[a], &all = own_.slots[b];
      return part.offset >= all.offset && part.offset + part.capacity <= all.offset + all.capacity;
    });
  }

  const Plan& plan_;
  const RankPlan& own_;
  std::uint32_t rank_;
  std::map<std::uint32_t, std::size_t> last_;  // by group: its part so far
};

}  // namespace

Status check_protocols(const Plan& plan, std::uint32_t rank) {
  return ProtocolCheck(plan, rank).run();
}

}  // namespace cinch::rt
