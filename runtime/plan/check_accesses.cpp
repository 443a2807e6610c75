// Checks the accesses of the tasks of one rank, and their order.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <utility>

#include "runtime/plan/check_plan.h"

namespace cinch::rt {
namespace {

// Tells which tasks have ended when another begins. It walks back from the later task and stays
// between the two: accesses to the same place lie close together, and a table of all pairs would be
// too large for plans of many bundles.
class Order {
 public:
  explicit Order(const std::vector<Task>& tasks) : tasks_(tasks), seen_(tasks.size()) {}

  bool is_before(std::size_t a, std::size_t b) {
    if (a >= b) return false;
    ++walk_;
    open_ = {b};
    while (!open_.empty()) {
      const std::size_t task = open_.back();
      open_.pop_back();
      for (const std::uint32_t earlier : tasks_[task].after) {
        if (earlier == a) return true;
        if (earlier < a || seen_[earlier] == walk_) continue;
        seen_[earlier] = walk_;
        open_.push_back(earlier);
      }
    }
    return false;
  }
  bool are_ordered(std::size_t a, std::size_t b) {
    return a == b || is_before(std::min(a, b), std::max(a, b));
  }

 private:
  const std::vector<Task>& tasks_;
  std::vector<std::uint64_t> seen_;  // the last walk that reached each task
  std::uint64_t walk_ = 0;
  std::vector<std::size_t> open_;  // to visit in the present walk
};

struct Access {
  std::size_t task = 0;
  bool is_write = false;
  std::uint64_t begin = 0, end = 0;  // bytes of the wire
};

// The user's update may be the gradient's memory, so both are one place; so are their copies on the
// CPUs of a rank with a GPU. Parts of a `sync` continue one call.
enum class Place : std::uint8_t { User, Copy, Sum, Call };

class AccessCheck {
 public:
  AccessCheck(const Plan& plan, std::uint32_t rank)
      : plan_(plan), own_(plan.ranks[rank]), rank_(rank), order_(own_.tasks) {}

  Status run() {
    for (std::size_t t = 0; t < own_.tasks.size(); ++t) {
      for (const std::uint32_t group : own_.tasks[t].groups) {
        CINCH_TRY(note_value(t, group_of_values(plan_, group)));
      }
      note_slots(t);
    }
    CINCH_TRY(check_updates());
    CINCH_TRY(check_written());
    return check_conflicts();
  }

 private:
  using Accesses = std::vector<Access>;

  void touch(std::size_t task, std::uint32_t group, Place place, bool is_write) {
    values_[{group, place}].push_back({task, is_write, 0, 0});
  }
  Place place_of(std::uint32_t group, Value value) const {
    if (value == Value::Sum) return Place::Sum;
    return is_on_cpus(plan_, group) ? Place::Copy : Place::User;
  }
  // All but the user's gradient must be written before it is read.
  Status read_value(std::size_t task, std::uint32_t group, Value value) {
    const Place place = place_of(group, value);
    const bool is_gradient = value == Value::Gradient;
    if (is_gradient && place == Place::User) {
      touch(task, group, place, false);
      return Ok{};
    }
    const auto is_writer = [&](const Access& access) {
      const bool fetches = own_.tasks[access.task].kind == TaskKind::Fetch;
      return access.is_write && fetches == is_gradient && order_.is_before(access.task, task);
    };
    // The last writer is the nearest.
    if (std::ranges::none_of(std::views::reverse(values_[{group, place}]), is_writer)) {
      return task_fault(plan_, rank_, task,
                        fmt::format("reads the {} before it is written", value_name(value)));
    }
    touch(task, group, place, false);
    return Ok{};
  }
  Status write_value(std::size_t task, std::uint32_t group, Value value) {
    if (value == Value::Gradient) return task_fault(plan_, rank_, task, "writes the gradient");
    touch(task, group, place_of(group, value), true);
    return Ok{};
  }
  Status add_to_sum(std::size_t task, std::uint32_t group) {
    const Status status = read_value(task, group, Value::Sum);
    return status ? write_value(task, group, Value::Sum) : status;
  }

  Status note_value(std::size_t t, std::uint32_t group) {
    const Task& task = own_.tasks[t];
    switch (task.kind) {
      case TaskKind::Clear:
        return write_value(t, group, Value::Sum);
      case TaskKind::Encode:
        return read_value(t, group, task.from);
      case TaskKind::Decode:
        return write_value(t, group, task.to);
      case TaskKind::DecodeAdd:
      case TaskKind::Scale:
        return add_to_sum(t, group);
      case TaskKind::Add: {
        const Status status = read_value(t, group, Value::Gradient);
        return status ? add_to_sum(t, group) : status;
      }
      case TaskKind::Finish: {
        const Status status = read_value(t, group, Value::Sum);
        return status ? write_value(t, group, task.to) : status;
      }
      case TaskKind::Part: {
        touch(t, group, Place::Call, true);
        const Status status = read_value(t, group, Value::Gradient);
        return status && task.is_last_part() ? write_value(t, group, Value::Update) : status;
      }
      case TaskKind::Synchronise: {
        const Status status = read_value(t, group, Value::Gradient);
        return status ? write_value(t, group, Value::Update) : status;
      }
      case TaskKind::Fetch:
        touch(t, group, Place::User, false);
        touch(t, group, Place::Copy, true);
        return Ok{};
      case TaskKind::Deliver: {
        const Status status = read_value(t, group, Value::Update);
        if (status) touch(t, group, Place::User, true);
        return status;
      }
      case TaskKind::Spread:
      case TaskKind::Join:
      case TaskKind::Exchange:
        return Ok{};
    }
    return Ok{};
  }

  void note_slot(std::size_t task, std::uint32_t slot, bool is_write) {
    const Slot& place = own_.slots[slot];
    if (place.capacity > 0) {
      bytes_.push_back({task, is_write, place.offset, place.offset + place.capacity});
    }
  }
  // Encoding writes lengths; a sized exchange reads those of the slots that it sends and receives.
  void note_length(std::size_t task, std::uint32_t slot, bool is_write) {
    const std::uint32_t length = own_.slots[slot].length;
    if (length != kNoSlot) note_slot(task, length, is_write);
  }
  void note_slots(std::size_t t) {
    const Task& task = own_.tasks[t];
    for (const std::uint32_t slot : task.reads) {
      note_slot(t, slot, false);
      if (task.is_sized) note_length(t, slot, false);
    }
    for (const std::uint32_t slot : task.writes) {
      note_slot(t, slot, true);
      if (task.is_sized) note_length(t, slot, false);
      if (task.kind == TaskKind::Encode) note_length(t, slot, true);
    }
  }

  // Checks that each update has one writer.
  Status check_updates() {
    for (std::uint32_t group = 0; group < plan_.groups.size(); ++group) {
      if (plan_.groups[group].pieces.empty() || plan_.groups[group].carries != kNoGroup) continue;
      const auto wanted = TRY(has_update(group));
      const Accesses& all = values_[{group, Place::User}];
      const auto num = std::ranges::count_if(all, [](const Access& a) { return a.is_write; });
      const bool is_right = wanted == Updated::Here        ? num == 1
                            : wanted == Updated::Elsewhere ? num == 0
                                                           : num <= 1;
      if (is_right) continue;
      return fail(
          ErrorKind::InvalidArgument,
          fmt::format("plan: rank {} writes the update of group {} {} times", rank_, group, num));
    }
    return Ok{};
  }

  // Where the update of a group's pieces is needed; no rank needs that of pieces without elements.
  enum class Updated : std::uint8_t { Anywhere, Here, Elsewhere };
  Result<Updated> has_update(std::uint32_t group) const {
    auto has = Updated::Anywhere;
    for (const std::uint32_t index : plan_.groups[group].pieces) {
      const Piece& piece = plan_.pieces[index];
      const PlanTensor& tensor = plan_.tensors[piece.tensor];
      const bool is_scattered = !tensor.part_ends.empty();
      if (is_scattered && piece.num_elems == 0) continue;
      const ElementRange part = updated_part(tensor, rank_);
      const std::int64_t begin = std::max(piece.first, part.first),
                         end = std::min(piece.first + piece.num_elems, part.first + part.num_elems);
      const bool is_own = !is_scattered || end - begin == piece.num_elems;
      if (!is_own && end > begin) {
        return fail(
            ErrorKind::InvalidArgument,
            fmt::format("plan: a piece of group {} lies across rank {}'s part", group, rank_));
      }
      const auto own = is_own ? Updated::Here : Updated::Elsewhere;
      if (has != Updated::Anywhere && has != own) {
        return fail(ErrorKind::InvalidArgument,
                    fmt::format("plan: group {} has pieces of several ranks' parts", group));
      }
      has = own;
    }
    return has;
  }

  Status check_written() {
    Accesses writes;
    std::ranges::copy_if(bytes_, std::back_inserter(writes), &Access::is_write);
    std::ranges::sort(writes, {}, &Access::begin);
    // The farthest end of all writes up to here.
    std::vector<std::uint64_t> reach;
    reach.reserve(writes.size());
    for (const Access& write : writes) {
      reach.push_back(std::max(write.end, reach.empty() ? 0 : reach.back()));
    }
    for (const Access& read : bytes_) {
      if (read.is_write || is_written(read, writes, reach)) continue;
      return task_fault(
          plan_, rank_, read.task,
          fmt::format("reads bytes {} to {} before they are written", read.begin, read.end));
    }
    return Ok{};
  }
  // Do earlier writes cover all of its bytes: one write, or several side by side?
  bool is_written(const Access& read, const Accesses& writes,
                  const std::vector<std::uint64_t>& reach) {
    std::uint64_t next = read.begin;
    while (next < read.end) {
      const std::uint64_t end = written_from(next, read.task, writes, reach);
      if (end == next) return false;
      next = end;
    }
    return true;
  }
  // The farthest end of a write before the task that covers the byte; the byte itself if none does.
  std::uint64_t written_from(std::uint64_t byte, std::size_t task, const Accesses& writes,
                             const std::vector<std::uint64_t>& reach) {
    const auto later = std::ranges::upper_bound(writes, byte, {}, &Access::begin);
    for (auto i = static_cast<std::size_t>(later - writes.begin()); i-- > 0;) {
      if (reach[i] <= byte) break;
      if (writes[i].end > byte && order_.is_before(writes[i].task, task)) return writes[i].end;
    }
    return byte;
  }

  Status check_pair(const Access& a, const Access& b) {
    if ((!a.is_write && !b.is_write) || order_.are_ordered(a.task, b.task)) return Ok{};
    return task_fault(plan_, rank_, std::max(a.task, b.task),
                      fmt::format("is not ordered with task {}, which touches the same",
                                  std::min(a.task, b.task)));
  }

  // Accesses are in the order of tasks. If each comes after the write before it, and each write
  // after the reads since the write before it, then all that conflict are ordered. A sum has a
  // writer for each rank, so comparing all pairs would take too long.
  Status check_value(const Accesses& all) {
    Accesses since_write;  // the last write, and reads after it
    for (const Access& access : all) {
      if (access.is_write) {
        for (const Access& earlier : since_write) CINCH_TRY(check_pair(earlier, access));
        since_write.clear();
      } else if (!since_write.empty()) {
        CINCH_TRY(check_pair(since_write.front(), access));
      }
      since_write.push_back(access);
    }
    return Ok{};
  }

  Status check_conflicts() {
    for (const auto& [place, all] : values_) CINCH_TRY(check_value(all));
    std::ranges::sort(bytes_, {}, &Access::begin);
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      for (std::size_t j = i + 1; j < bytes_.size() && bytes_[j].begin < bytes_[i].end; ++j) {
        CINCH_TRY(check_pair(bytes_[i], bytes_[j]));
      }
    }
    return Ok{};
  }

  const Plan& plan_;
  const RankPlan& own_;
  std::uint32_t rank_;
  Order order_;
  std::map<std::pair<std::uint32_t, Place>, Accesses> values_;
  Accesses bytes_;
};

}  // namespace

Status check_accesses(const Plan& plan, std::uint32_t rank) {
  return AccessCheck(plan, rank).run();
}

}  // namespace cinch::rt
