// Checks the exchanges between ranks: whether they match, and whether all of them can take place.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "runtime/plan/check_plan.h"

namespace cinch::rt {
namespace {

bool is_message(const Task& task) {
  return task.kind == TaskKind::Exchange &&
         (task.exchange == ExchangeKind::Send || task.exchange == ExchangeKind::Receive);
}

class MeetingCheck {
 public:
  explicit MeetingCheck(const Plan& plan) : plan_(plan), collectives_(plan.world()) {
    for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
      const auto& tasks = plan.ranks[rank].tasks;
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const Task& task = tasks[t];
        if (!is_message(task)) {
          if (task.lane() == Lane::Network) collectives_[rank].push_back(t);
        } else if (task.exchange == ExchangeKind::Send) {
          sends_[{rank, task.peer}].push_back(t);
        } else {
          receives_[{task.peer, rank}].push_back(t);
        }
      }
    }
  }

  Status run() {
    CINCH_TRY(check_numbers());
    for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
      CINCH_TRY(check_collectives(rank));
    }
    for (const auto& [way, sends] : sends_) {
      CINCH_TRY(check_messages(way, sends, receives_[way]));
    }
    for (const auto& [way, receives] : receives_) {
      if (sends_.contains(way)) continue;
      return task_fault(plan_, way.second, receives.front(),
                        fmt::format("rank {} sends nothing", way.first));
    }
    return run_all();
  }

 private:
  using Way = std::pair<std::uint32_t, std::uint32_t>;  // from, to
  using Indices = std::vector<std::size_t>;

  const Task& task(std::uint32_t rank, std::size_t index) const {
    return plan_.ranks[rank].tasks[index];
  }
  std::uint64_t capacity(std::uint32_t rank, std::uint32_t slot) const {
    return plan_.ranks[rank].slots[slot].capacity;
  }

  Status check_numbers() const {
    const Indices& first = collectives_[0];
    for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
      if (collectives_[rank].size() == first.size()) continue;
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("plan: rank {} has {} collectives, rank 0 {}", rank,
                              collectives_[rank].size(), first.size()));
    }
    return Ok{};
  }
  // Compares this rank's collectives with rank 0's.
  Status check_collectives(std::uint32_t rank) const {
    const Indices &own = collectives_[rank], &first = collectives_[0];
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Task &a = task(0, first[i]), &b = task(rank, own[i]);
      const bool is_same = a.kind == b.kind && a.exchange == b.exchange &&
                           a.reduction == b.reduction && a.dtype == b.dtype &&
                           a.is_sized == b.is_sized && a.groups == b.groups &&
                           (a.exchange != ExchangeKind::Broadcast || a.peer == b.peer);
      if (!is_same) return task_fault(plan_, rank, own[i], "is not what rank 0 does there");
      for (std::uint32_t other = 0; other < plan_.world(); ++other) {
        if (fits(rank, b, other, task(other, collectives_[other][i]))) continue;
        return task_fault(plan_, rank, own[i], fmt::format("rank {} expects another size", other));
      }
    }
    return Ok{};
  }
  // Does what `rank` sends to `other` in a collective fit?
  bool fits(std::uint32_t rank, const Task& a, std::uint32_t other, const Task& b) const {
    if (a.kind == TaskKind::Synchronise) return true;
    switch (a.exchange) {
      case ExchangeKind::AllGather:
        return capacity(rank, a.reads[0]) == capacity(other, b.writes[rank]);
      case ExchangeKind::AllToAll:
        return capacity(rank, a.reads[other]) == capacity(other, b.writes[rank]);
      case ExchangeKind::ReduceScatter:
        return capacity(rank, a.reads[other]) == capacity(other, b.writes[0]);
      default:
        return capacity(rank, a.writes[0]) == capacity(other, b.writes[0]);
    }
  }

  Status check_messages(const Way& way, const Indices& sends, const Indices& receives) const {
    if (sends.size() != receives.size()) {
      return task_fault(plan_, way.first, sends.front(),
                        fmt::format("rank {} receives {} messages of {}", way.second,
                                    receives.size(), sends.size()));
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const Task &a = task(way.first, sends[i]), &b = task(way.second, receives[i]);
      const bool is_same = a.is_sized == b.is_sized &&
                           capacity(way.first, a.reads[0]) == capacity(way.second, b.writes[0]);
      if (is_same) continue;
      return task_fault(plan_, way.first, sends[i],
                        fmt::format("rank {} expects another size", way.second));
    }
    return Ok{};
  }

  // ---- do all tasks end? ----

  // Tasks that end together: a task of each rank, or both sides of a message.
  struct Meeting {
    std::vector<std::pair<std::uint32_t, std::size_t>> parts;  // ranks and their tasks
    std::size_t num_started = 0;
  };

  struct Progress {
    std::vector<std::size_t> missing;  // by task: earlier tasks that have not ended
    std::vector<std::vector<std::size_t>> next;
    std::vector<std::size_t> meeting;  // by network task
    std::vector<bool> has_ended;
    std::deque<std::size_t> ready;  // of the other lanes
    std::size_t next_exchange = 0;  // started in order
    std::size_t num_ended = 0;
  };

  void begin(std::uint32_t rank) {
    const auto& tasks = plan_.ranks[rank].tasks;
    Progress& own = progress_[rank];
    own.missing.resize(tasks.size());
    own.next.resize(tasks.size());
    own.meeting.resize(tasks.size());
    own.has_ended.resize(tasks.size());
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      own.missing[t] = tasks[t].after.size();
      for (const std::uint32_t earlier : tasks[t].after) own.next[earlier].push_back(t);
      if (own.missing[t] == 0 && tasks[t].lane() != Lane::Network) own.ready.push_back(t);
    }
  }
  void add_meeting(Meeting meeting) {
    for (const auto& [rank, index] : meeting.parts) {
      progress_[rank].meeting[index] = meetings_.size();
    }
    meetings_.push_back(std::move(meeting));
  }
  void add_meetings() {
    for (std::size_t i = 0; i < collectives_[0].size(); ++i) {
      Meeting meeting;
      for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
        meeting.parts.emplace_back(rank, collectives_[rank][i]);
      }
      add_meeting(std::move(meeting));
    }
    for (const auto& [way, sends] : sends_) {
      for (std::size_t i = 0; i < sends.size(); ++i) {
        add_meeting({{{way.first, sends[i]}, {way.second, receives_[way][i]}}});
      }
    }
  }

  void end(std::uint32_t rank, std::size_t index) {
    Progress& own = progress_[rank];
    own.has_ended[index] = true;
    ++own.num_ended;
    for (const std::size_t later : own.next[index]) {
      const bool is_free = --own.missing[later] == 0;
      if (is_free && task(rank, later).lane() != Lane::Network) own.ready.push_back(later);
    }
  }
  // Runs a rank as far as it can go by itself; notes meetings that are then complete.
  void move(std::uint32_t rank) {
    Progress& own = progress_[rank];
    while (!own.ready.empty()) {
      const std::size_t index = own.ready.front();
      own.ready.pop_front();
      end(rank, index);
    }
    const auto& tasks = plan_.ranks[rank].tasks;
    for (; own.next_exchange < tasks.size(); ++own.next_exchange) {
      if (tasks[own.next_exchange].lane() != Lane::Network) continue;
      if (own.missing[own.next_exchange] > 0) break;
      const std::size_t number = own.meeting[own.next_exchange];
      if (++meetings_[number].num_started == meetings_[number].parts.size()) {
        complete_.push_back(number);
      }
    }
  }
  Status run_all() {
    progress_.resize(plan_.world());
    for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) begin(rank);
    add_meetings();
    for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) move(rank);
    while (!complete_.empty()) {
      const Meeting& meeting = meetings_[complete_.front()];
      complete_.pop_front();
      for (const auto& [rank, index] : meeting.parts) end(rank, index);
      for (const auto& [rank, index] : meeting.parts) move(rank);
    }
    for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
      const Progress& own = progress_[rank];
      if (own.num_ended == own.has_ended.size()) continue;
      const auto stuck = std::ranges::find(own.has_ended, false) - own.has_ended.begin();
      return task_fault(plan_, rank, static_cast<std::size_t>(stuck), "never ends: a deadlock");
    }
    return Ok{};
  }

  const Plan& plan_;
  std::vector<Indices> collectives_;
  std::map<Way, Indices> sends_, receives_;
  std::vector<Progress> progress_;
  std::vector<Meeting> meetings_;
  std::deque<std::size_t> complete_;  // meetings that all ranks have started, but none has ended
};

}  // namespace

Status check_meetings(const Plan& plan) {
  return MeetingCheck(plan).run();
}

// Checks the parts of a `sync`: they follow each other, with their collective in between.

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
