// Bodies of device_wire.h.
#include "runtime/sync/device/device_wire.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/sync/task_facts.h"

namespace cinch::rt {
namespace {

bool adds_up(const Task& task) {
  return task.kind == TaskKind::Spread || task.kind == TaskKind::Join;
}

// Tasks whose slots must lie all on the host or all on the device.
bool is_in_one_place(const Task& task) {
  return task.kind == TaskKind::Exchange || adds_up(task);
}

bool is_for_the_host(const Task& task, const Transport& transport) {
  return task.kind == TaskKind::Exchange && !transport.takes_device_memory(task.exchange);
}

// Marks all of a task's slots; returns false if they were marked already.
bool mark_slots(const Task& task, std::vector<bool>& marked) {
  bool is_new = false;
  for (const auto* slots : {&task.reads, &task.writes}) {
    for (const std::uint32_t slot : *slots) {
      is_new = is_new || !marked[slot];
      marked[slot] = true;
    }
  }
  return is_new;
}

bool has_marked(const Task& task, const std::vector<bool>& marked) {
  const auto is_marked = [&marked](std::uint32_t slot) { return marked[slot]; };
  return std::ranges::any_of(task.reads, is_marked) || std::ranges::any_of(task.writes, is_marked);
}

// Slots that share bytes lie in one place. Returns false if it marked nothing.
bool mark_overlaps(const std::vector<Slot>& slots, std::vector<bool>& marked) {
  std::vector<std::uint32_t> order(slots.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&slots](std::uint32_t slot) { return slots[slot].offset; });
  bool is_new = false;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    std::uint64_t last_byte = 0;
    bool is_marked = false;
    for (end = begin; end < order.size(); ++end) {
      const Slot& slot = slots[order[end]];
      if (end > begin && slot.offset >= last_byte) break;
      last_byte = std::max(last_byte, slot.offset + slot.capacity);
      is_marked = is_marked || marked[order[end]];
    }
    for (std::size_t i = begin; is_marked && i < end; ++i) {
      is_new = is_new || !marked[order[i]];
      marked[order[i]] = true;
    }
  }
  return is_new;
}

std::vector<bool> host_slots(const Plan& plan, const Transport& transport,
                             const std::vector<bool>& adds_there) {
  const RankPlan& own = plan.ranks[transport.rank()];
  std::vector<bool> marked(own.slots.size());
  for (const Slot& slot : own.slots) {
    if (slot.length != kNoSlot) marked[slot.length] = true;
  }
  for (const Task& task : own.tasks) {
    if (adds_up(task) && !adds_there[codec_of(plan, task)]) mark_slots(task, marked);
    if (is_for_the_host(task, transport)) mark_slots(task, marked);
  }
  for (bool has_grown = true; has_grown;) {
    has_grown = mark_overlaps(own.slots, marked);
    for (const Task& task : own.tasks) {
      if (!is_in_one_place(task) || !has_marked(task, marked)) continue;
      has_grown = mark_slots(task, marked) || has_grown;
    }
  }
  return marked;
}

}  // namespace

DeviceWire::DeviceWire(const Plan& plan, LentMemory wire, GpuStream stream, Transport& transport)
    : own_(plan.ranks[transport.rank()]),
      wire_(std::move(wire)),
      device_(wire_.device.get()),
      stream_(stream),
      transport_(transport),
      ends_(own_.tasks.size()) {}

Result<std::unique_ptr<DeviceWire>> DeviceWire::open(const Plan& plan, const LentMemory& wire,
                                                     GpuStream stream, Transport& transport,
                                                     const std::vector<bool>& adds_there) {
  std::unique_ptr<DeviceWire> made(new DeviceWire(plan, wire, stream, transport));
  made->is_on_host_ = host_slots(plan, transport, adds_there);
  const bool has_any = std::ranges::find(made->is_on_host_, false) != made->is_on_host_.end();
  made->is_used_ = has_any && transport.lend(wire);
  if (!made->is_used_) return made;
  CINCH_TRY(made->make_events());
  return made;
}

Status DeviceWire::make_events() {
  const GpuDevice::Scope scope(*device_);
  const GpuDriver& driver = device_->driver();
  GpuCode code = driver.stream_create(&order_, kGpuStreamNonBlocking);
  for (const Task& task : own_.tasks) {
    if (task.kind != TaskKind::Exchange || !has_slots_of(task)) continue;
    for (const std::uint32_t earlier : task.after) {
      const bool is_made = ends_[earlier] != nullptr;
      if (code != kGpuSuccess || is_made || own_.tasks[earlier].lane() != Lane::Compute) continue;
      code = driver.event_create(&ends_[earlier], kGpuEventWithoutTiming);
    }
  }
  return device_->status(code, "making events");
}

DeviceWire::~DeviceWire() {
  if (!is_used_) return;
  transport_.take_back(wire_.bytes);
  const GpuDevice::Scope scope(*device_);
  for (GpuEvent end : ends_) {
    if (end != nullptr) (void)device_->driver().event_destroy(end);
  }
  if (order_ != nullptr) (void)device_->driver().stream_destroy(order_);
}

bool DeviceWire::has_slots_of(const Task& exchange) const {
  const auto& slots = exchange.reads.empty() ? exchange.writes : exchange.reads;
  return !slots.empty() && has(slots.front());
}

Status DeviceWire::mark_end(const Task& task) {
  GpuEvent end = ends_[index_of(task)];
  if (end == nullptr) return Ok{};
  const GpuDevice::Scope scope(*device_);
  return device_->status(device_->driver().event_record(end, stream_), "marking a task's end");
}

Result<WirePlace> DeviceWire::place_of(const Task& exchange, PieceMemory& memory) {
  if (!has_slots_of(exchange)) return WirePlace{memory.wire()};
  WirePlace place{wire_.bytes, MemoryPlace::Device};
  std::unique_lock<std::mutex> turn;
  if (wire_.turns != nullptr) turn = std::unique_lock(*wire_.turns);
  const GpuDevice::Scope scope(*device_);
  for (const std::uint32_t earlier : exchange.after) {
    GpuEvent end = ends_[earlier];
    if (end == nullptr) continue;
    place.after = order_;
    const GpuCode code = device_->driver().stream_wait_event(order_, end, 0);
    CINCH_TRY(device_->status(code, "waiting for a task"));
  }
  return place;
}

}  // namespace cinch::rt
