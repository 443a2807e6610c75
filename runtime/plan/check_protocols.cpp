// Parts of a `sync`: one follows the other, and what ranks tell each other lies between them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "runtime/plan/check_parts.h"

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
      if (Status status = check_part(t); !status) return status;
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
    const bool is_next = is_first ? task.part == 0 && !task.is_last_part()
                                  : task.part == own_.tasks[before->second].part + 1 &&
                                        !own_.tasks[before->second].is_last_part();
    if (!is_next) return task_fault(plan_, rank_, index, "is not the next part");
    for (const std::uint32_t slot : statuses_of(task)) {
      if (own_.slots[slot].capacity == 1) continue;
      return task_fault(plan_, rank_, index, "a status is one byte");
    }
    if (!is_first && !meet(own_.tasks[before->second], task)) {
      return task_fault(plan_, rank_, index, "begins with what no exchange gives");
    }
    last_[task.groups[0]] = index;
    return Ok{};
  }

  // Of those it reads and the one it writes.
  Slots statuses_of(const Task& task) const {
    Slots slots;
    if (task.part > 0) slots.assign(task.reads.begin(), task.reads.begin() + plan_.world());
    if (!task.writes.empty()) slots.push_back(task.writes[0]);
    return slots;
  }

  // The status of the one part and the collective it asks for give what the other one reads.
  bool meet(const Task& part, const Task& next) const {
    const std::span<const std::uint32_t> writes(part.writes), reads(next.reads);
    const auto statuses = reads.first(plan_.world()), results = reads.subspan(plan_.world());
    const auto gathers = [&](const Task& task) {
      return task.exchange == ExchangeKind::AllGather &&
             is_between(task, writes.first(1), statuses);
    };
    const auto does_collective = [&](const Task& task) {
      return task.exchange == part.exchange && task.reduction == part.reduction &&
             task.dtype == part.dtype && task.peer == part.peer && task.groups == part.groups &&
             is_between(task, writes.subspan(1), results);
    };
    const bool is_at_end = part.exchange == ExchangeKind::Send;
    if (is_at_end && (!results.empty() || writes.size() > 1)) return false;
    return std::ranges::any_of(own_.tasks, gathers) &&
           (is_at_end || std::ranges::any_of(own_.tasks, does_collective));
  }

  static bool is_between(const Task& task, std::span<const std::uint32_t> from,
                         std::span<const std::uint32_t> to) {
    return task.kind == TaskKind::Exchange && !task.is_sized &&
           std::ranges::equal(task.reads, from) && std::ranges::equal(task.writes, to);
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
