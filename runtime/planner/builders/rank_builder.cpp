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
      case TaskKind::Fetch:
        order_value(task, group, Value::Update, true);
        break;
      case TaskKind::Deliver:
        order_value(task, group, Value::Update, false);
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

void RankBuilder::fetch_for(const Task& task) {
  const bool reads =
      task.kind == TaskKind::Add || (task.kind == TaskKind::Encode && task.from == Value::Gradient);
  if (!reads) return;
  is_fetched_.resize(plan_.groups.size());
  Task fetch{.kind = TaskKind::Fetch};
  for (const std::uint32_t group : task.groups) {
    const std::uint32_t values = group_of_values(plan_, group);
    if (is_fetched_[values] || plan_.groups[values].pieces.empty()) continue;
    is_fetched_[values] = true;
    fetch.groups.push_back(values);
  }
  if (!fetch.groups.empty()) append(std::move(fetch));
}

void RankBuilder::add(Task task) {
  const auto is_there = [this](std::uint32_t group) { return is_on_cpus(plan_, group); };
  if (std::ranges::none_of(task.groups, is_there)) {
    append(std::move(task));
    return;
  }
  fetch_for(task);
  const bool updates =
      (task.kind == TaskKind::Decode || task.kind == TaskKind::Finish) && task.to == Value::Update;
  Task deliver{.kind = TaskKind::Deliver};
  for (const std::uint32_t group : task.groups) {
    if (updates && is_there(group)) deliver.groups.push_back(group_of_values(plan_, group));
  }
  append(std::move(task));
  if (updates) append(std::move(deliver));
}

void RankBuilder::append(Task task) {
  const auto is_there = [this](std::uint32_t group) { return is_on_cpus(plan_, group); };
  task.on_cpus = std::ranges::any_of(task.groups, is_there);
  order_values(task);
  order_slots(task);
  std::ranges::sort(task.after);
  task.after.erase(std::ranges::unique(task.after).begin(), task.after.end());
  set_round(task);
  to_.tasks.push_back(std::move(task));
}

void RankBuilder::clear(std::uint32_t group) {
  add({.kind = TaskKind::Clear, .groups = {group}});
}

void RankBuilder::encode(Site site, Value from, const std::vector<std::uint32_t>& groups,
                         const Slots& slots) {
  add({.kind = TaskKind::Encode, .groups = groups, .site = site, .from = from, .writes = slots});
}

void RankBuilder::decode(Site site, const std::vector<std::uint32_t>& groups, const Slots& slots,
                         Value to) {
  add({.kind = TaskKind::Decode, .groups = groups, .site = site, .to = to, .reads = slots});
}

void RankBuilder::decode_add(Site site, std::uint32_t group, std::uint32_t slot) {
  add({.kind = TaskKind::DecodeAdd, .groups = {group}, .site = site, .reads = {slot}});
}

void RankBuilder::encode_dense(Value from, std::uint32_t group, std::uint32_t slot, Site site) {
  add({.kind = TaskKind::Encode,
       .groups = {group},
       .site = site,
       .from = from,
       .is_dense = true,
       .writes = {slot}});
}

void RankBuilder::decode_dense(std::uint32_t group, std::uint32_t slot, Value to) {
  add({.kind = TaskKind::Decode, .groups = {group}, .to = to, .is_dense = true, .reads = {slot}});
}

void RankBuilder::decode_add_dense(std::uint32_t group, std::uint32_t slot) {
  add({.kind = TaskKind::DecodeAdd, .groups = {group}, .is_dense = true, .reads = {slot}});
}

void RankBuilder::add_gradient(std::uint32_t group) {
  add({.kind = TaskKind::Add, .groups = {group}});
}

void RankBuilder::scale(std::uint32_t group, float factor) {
  add({.kind = TaskKind::Scale, .groups = {group}, .factor = factor});
}

void RankBuilder::finish(std::uint32_t group, Value to) {
  add({.kind = TaskKind::Finish, .groups = {group}, .from = Value::Sum, .to = to});
}

void RankBuilder::synchronise(std::uint32_t group) {
  add({.kind = TaskKind::Synchronise, .groups = {group}});
}

RankBuilder::Slots RankBuilder::lengths(const Slots& slots) const {
  Slots found;
  for (const std::uint32_t slot : slots) found.push_back(to_.slots[slot].length);
  return found;
}

void RankBuilder::add_exchange(Task task, const Slots& reads, const Slots& writes) {
  task.kind = TaskKind::Exchange;
  if (is_sized(reads.empty() ? writes.front() : reads.front())) {
    task.reads = lengths(reads);
    task.writes = lengths(writes);
    add(task);
    task.is_sized = true;
  }
  task.reads = reads;
  task.writes = writes;
  add(std::move(task));
}

void RankBuilder::all_gather(const std::vector<std::uint32_t>& groups, std::uint32_t own,
                             const Slots& all) {
  add_exchange({.groups = groups, .exchange = ExchangeKind::AllGather}, {own}, all);
}

void RankBuilder::all_to_all(const std::vector<std::uint32_t>& groups, const Slots& sent,
                             const Slots& received) {
  add_exchange({.groups = groups, .exchange = ExchangeKind::AllToAll}, sent, received);
}

void RankBuilder::spread(std::uint32_t group, std::uint32_t payloads, const Slots& arrays) {
  add({.kind = TaskKind::Spread, .groups = {group}, .reads = {payloads}, .writes = arrays});
}

void RankBuilder::join(std::uint32_t group, std::uint32_t payloads, const Slots& arrays,
                       std::uint32_t result) {
  Task task{.kind = TaskKind::Join, .groups = {group}, .reads = {payloads}, .writes = {result}};
  task.reads.insert(task.reads.end(), arrays.begin(), arrays.end());
  add(std::move(task));
}

void RankBuilder::all_reduce(std::uint32_t group, std::uint32_t slot, DType dtype,
                             RankReduction reduction) {
  add({.kind = TaskKind::Exchange,
       .groups = {group},
       .reads = {slot},
       .writes = {slot},
       .exchange = ExchangeKind::AllReduce,
       .reduction = reduction,
       .dtype = dtype});
}

void RankBuilder::send(std::uint32_t group, std::uint32_t slot, std::uint32_t to) {
  add_exchange({.groups = {group}, .exchange = ExchangeKind::Send, .peer = to}, {slot}, {});
}

void RankBuilder::receive(std::uint32_t group, std::uint32_t slot, std::uint32_t from) {
  add_exchange({.groups = {group}, .exchange = ExchangeKind::Receive, .peer = from}, {}, {slot});
}

}  // namespace cinch::rt
