#include "runtime/planner/builders/builders.h"

#include <algorithm>
#include <numeric>

#include "runtime/call/list_session.h"

namespace cinch::rt {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
// Messages begin at multiples of this, so that payloads and vectors are aligned.
constexpr std::uint64_t kSlotAlignment = 64;
static_assert(kSlotAlignment % kArenaAlignment == 0);

}  // namespace

std::uint32_t RankBuilder::add_slot(std::uint64_t capacity) {
  const std::uint64_t offset =
      (to_.wire_bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  to_.slots.push_back({offset, capacity, kNoSlot});
  to_.wire_bytes = offset + capacity;
  return static_cast<std::uint32_t>(to_.slots.size() - 1);
}

std::uint32_t RankBuilder::add_sized_slot(std::uint64_t capacity) {
  const std::uint32_t slot = add_slot(capacity);
  const std::uint32_t length = add_slot(kLengthBytes);
  to_.slots[slot].length = length;
  return slot;
}

RankBuilder::JointSlot RankBuilder::add_joint_slot(const std::vector<std::uint64_t>& capacities) {
  JointSlot made;
  const std::uint64_t bytes =
      std::accumulate(capacities.begin(), capacities.end(), std::uint64_t{0});
  made.all = add_slot(bytes);
  if (capacities.size() == 1) {
    made.parts = {made.all};
    return made;
  }
  std::uint64_t offset = to_.slots[made.all].offset;
  for (const std::uint64_t capacity : capacities) {
    made.parts.push_back(static_cast<std::uint32_t>(to_.slots.size()));
    to_.slots.push_back({offset, capacity, kNoSlot});
    offset += capacity;
  }
  joint_[made.all] = made.parts;
  return made;
}

RankBuilder::Slots RankBuilder::parts_of(std::uint32_t slot) const {
  const auto found = joint_.find(slot);
  return found == joint_.end() ? Slots{slot} : found->second;
}

Task RankBuilder::make(TaskKind kind, const std::vector<std::uint32_t>& groups) const {
  Task task;
  task.kind = kind;
  task.groups = groups;
  return task;
}

Task RankBuilder::make_exchange(ExchangeKind kind, const std::vector<std::uint32_t>& groups) const {
  Task task = make(TaskKind::Exchange, groups);
  task.exchange = kind;
  return task;
}

void RankBuilder::order(Task& task, Past& past, bool is_write) const {
  const auto number = static_cast<std::uint32_t>(to_.tasks.size());
  if (past.is_written && past.writer != number) task.after.push_back(past.writer);
  if (!is_write) {
    past.readers.push_back(number);
    return;
  }
  for (const std::uint32_t reader : past.readers) {
    if (reader != number) task.after.push_back(reader);
  }
  past.readers.clear();
  past.writer = number;
  past.is_written = true;
}

// The user's update may be the gradient's memory, so both count as one value.
void RankBuilder::order_value(Task& task, std::uint32_t group, Value value, bool is_write) {
  order(task, values_[{group_of_values(plan_, group), value == Value::Sum}], is_write);
}

void RankBuilder::order_values(Task& task) {
  for (const std::uint32_t group : task.groups) {
    switch (task.kind) {
      case TaskKind::Clear:
      case TaskKind::Scale:
      case TaskKind::DecodeAdd:
        order_value(task, group, Value::Sum, true);
        break;
      case TaskKind::Add:
        order_value(task, group, Value::Gradient, false);
        order_value(task, group, Value::Sum, true);
        break;
      case TaskKind::Encode:
        order_value(task, group, task.from, false);
        break;
      case TaskKind::Decode:
        order_value(task, group, task.to, true);
        break;
      case TaskKind::Finish:
        order_value(task, group, Value::Sum, false);
        order_value(task, group, task.to, true);
        break;
      case TaskKind::Part:
        // A part continues where the one before has stopped.
        order(task, calls_[group], true);
        order_value(task, group, Value::Gradient, false);
        if (task.is_last_part()) order_value(task, group, Value::Update, true);
        break;
      case TaskKind::Synchronise:
        order_value(task, group, Value::Update, true);
        break;
      case TaskKind::Spread:
      case TaskKind::Join:
      case TaskKind::Exchange:
        break;
    }
  }
}

void RankBuilder::order_slots(Task& task) {
  const auto order_length = [&](std::uint32_t slot, bool is_write) {
    if (is_sized(slot)) order(task, slots_[to_.slots[slot].length], is_write);
  };
  for (const std::uint32_t slot : task.reads) {
    for (const std::uint32_t part : parts_of(slot)) order(task, slots_[part], false);
    if (task.is_sized) order_length(slot, false);
  }
  for (const std::uint32_t slot : task.writes) {
    for (const std::uint32_t part : parts_of(slot)) order(task, slots_[part], true);
    if (task.is_sized) order_length(slot, false);
    if (task.kind == TaskKind::Encode) order_length(slot, true);
  }
}

// A collective is the next exchange behind those that it waits for, on every rank. A message's
// round depends on what other ranks wait for, so the plan's builder gives it.
void RankBuilder::set_round(Task& task) const {
  const bool is_message =
      task.kind == TaskKind::Exchange &&
      (task.exchange == ExchangeKind::Send || task.exchange == ExchangeKind::Receive);
  if (is_message) {
    task.round = task.is_sized ? round_ + 1 : round_;
    return;
  }
  for (const std::uint32_t earlier : task.after) {
    task.round = std::max(task.round, to_.tasks[earlier].round);
  }
  // Only the root's broadcast waits for the part that asks for it.
  for (const std::uint32_t group : task.groups) {
    const auto call = calls_.find(group);
    const bool has_part = call != calls_.end() && call->second.writer < to_.tasks.size();
    if (has_part) task.round = std::max(task.round, to_.tasks[call->second.writer].round);
  }
  if (task.lane() == Lane::Network) ++task.round;
}

void RankBuilder::begin_round(bool is_sized) {
  round_ = next_round_;
  next_round_ += is_sized ? 2 : 1;
}

void RankBuilder::add(Task task) {
  order_values(task);
  order_slots(task);
  std::ranges::sort(task.after);
  task.after.erase(std::ranges::unique(task.after).begin(), task.after.end());
  set_round(task);
  to_.tasks.push_back(std::move(task));
}

void RankBuilder::clear(std::uint32_t group) {
  add(make(TaskKind::Clear, {group}));
}

void RankBuilder::encode(Site site, Value from, const std::vector<std::uint32_t>& groups,
                         const Slots& slots) {
  Task task = make(TaskKind::Encode, groups);
  task.site = site;
  task.from = from;
  task.writes = slots;
  add(std::move(task));
}

void RankBuilder::decode(Site site, const std::vector<std::uint32_t>& groups, const Slots& slots,
                         Value to) {
  Task task = make(TaskKind::Decode, groups);
  task.site = site;
  task.reads = slots;
  task.to = to;
  add(std::move(task));
}

void RankBuilder::decode_add(Site site, std::uint32_t group, std::uint32_t slot) {
  Task task = make(TaskKind::DecodeAdd, {group});
  task.site = site;
  task.reads = {slot};
  add(std::move(task));
}

void RankBuilder::encode_dense(Value from, std::uint32_t group, std::uint32_t slot, Site site) {
  Task task = make(TaskKind::Encode, {group});
  task.site = site;
  task.is_dense = true;
  task.from = from;
  task.writes = {slot};
  add(std::move(task));
}

void RankBuilder::decode_dense(std::uint32_t group, std::uint32_t slot, Value to) {
  Task task = make(TaskKind::Decode, {group});
  task.is_dense = true;
  task.to = to;
  task.reads = {slot};
  add(std::move(task));
}

void RankBuilder::decode_add_dense(std::uint32_t group, std::uint32_t slot) {
  Task task = make(TaskKind::DecodeAdd, {group});
  task.is_dense = true;
  task.reads = {slot};
  add(std::move(task));
}

void RankBuilder::add_gradient(std::uint32_t group) {
  add(make(TaskKind::Add, {group}));
}

void RankBuilder::scale(std::uint32_t group, float factor) {
  Task task = make(TaskKind::Scale, {group});
  task.factor = factor;
  add(std::move(task));
}

void RankBuilder::finish(std::uint32_t group, Value to) {
  Task task = make(TaskKind::Finish, {group});
  task.from = Value::Sum;
  task.to = to;
  add(std::move(task));
}

void RankBuilder::synchronise(std::uint32_t group) {
  add(make(TaskKind::Synchronise, {group}));
}

RankBuilder::Slots RankBuilder::lengths(const Slots& slots) const {
  Slots found;
  for (const std::uint32_t slot : slots) found.push_back(to_.slots[slot].length);
  return found;
}

void RankBuilder::all_gather(const std::vector<std::uint32_t>& groups, std::uint32_t own,
                             const Slots& all) {
  Task task = make_exchange(ExchangeKind::AllGather, groups);
  if (is_sized(own)) {
    task.reads = lengths({own});
    task.writes = lengths(all);
    add(task);
    task.is_sized = true;
  }
  task.reads = {own};
  task.writes = all;
  add(std::move(task));
}

void RankBuilder::all_to_all(const std::vector<std::uint32_t>& groups, const Slots& sent,
                             const Slots& received) {
  Task task = make_exchange(ExchangeKind::AllToAll, groups);
  if (is_sized(sent.front())) {
    task.reads = lengths(sent);
    task.writes = lengths(received);
    add(task);
    task.is_sized = true;
  }
  task.reads = sent;
  task.writes = received;
  add(std::move(task));
}

void RankBuilder::spread(std::uint32_t group, std::uint32_t payloads, const Slots& arrays) {
  Task task = make(TaskKind::Spread, {group});
  task.reads = {payloads};
  task.writes = arrays;
  add(std::move(task));
}

void RankBuilder::join(std::uint32_t group, std::uint32_t payloads, const Slots& arrays,
                       std::uint32_t result) {
  Task task = make(TaskKind::Join, {group});
  task.reads = {payloads};
  task.reads.insert(task.reads.end(), arrays.begin(), arrays.end());
  task.writes = {result};
  add(std::move(task));
}

void RankBuilder::all_reduce(std::uint32_t group, std::uint32_t slot, DType dtype,
                             RankReduction reduction) {
  Task task = make_exchange(ExchangeKind::AllReduce, {group});
  task.dtype = dtype;
  task.reduction = reduction;
  task.reads = {slot};
  task.writes = {slot};
  add(std::move(task));
}

void RankBuilder::send(std::uint32_t group, std::uint32_t slot, std::uint32_t to) {
  Task task = make_exchange(ExchangeKind::Send, {group});
  task.peer = to;
  if (is_sized(slot)) {
    task.reads = lengths({slot});
    add(task);
    task.is_sized = true;
  }
  task.reads = {slot};
  add(std::move(task));
}

void RankBuilder::receive(std::uint32_t group, std::uint32_t slot, std::uint32_t from) {
  Task task = make_exchange(ExchangeKind::Receive, {group});
  task.peer = from;
  if (is_sized(slot)) {
    task.writes = lengths({slot});
    add(task);
    task.is_sized = true;
  }
  task.writes = {slot};
  add(std::move(task));
}

}  // namespace cinch::rt
