// The tasks in which a program meets other ranks: parts of a protocol, and whole protocols.
#include <numeric>

#include "runtime/collective/rank_meeting.h"
#include "runtime/sync/device/device_tasks.h"

namespace cinch::rt {
DeviceMemory::DeviceMemory(const Plan& plan, std::uint32_t rank, ComputeDevice& device,
                           DevicePart part)
    : plan_(&plan),
      own_(&plan.ranks[rank]),
      device_(&device),
      part_(part),
      sums_(plan.pieces.size()),
      apart_(plan.pieces.size()),
      values_{4, std::vector<std::uint8_t*>(plan.pieces.size()), {}},
      halves_{2, std::vector<std::uint8_t*>(plan.pieces.size()), {}},
      inputs_{4, std::vector<std::uint8_t*>(plan.pieces.size()), {}} {}

Result<DeviceMemory> DeviceMemory::make(const Plan& plan, std::uint32_t rank, ComputeDevice& device,
                                        const DeviceMemoryNeeds& needs) {
  DeviceMemory memory(plan, rank, device, needs.part);
  const std::size_t wire_bytes = device.is_host() ? 0 : memory.own_->wire_bytes;
  std::vector<std::size_t> sizes = {wire_bytes, needs.gathered_bytes};
  const PieceList summed = summed_pieces(plan, rank, needs.part);
  for (const PieceList* pieces : {&summed, &needs.apart}) {
    for (const std::uint32_t piece : *pieces) {
      sizes.push_back(static_cast<std::size_t>(plan.pieces[piece].num_elems) * 4);
    }
  }
  memory.memory_ = TRY(device.allocate(sizes));
  auto next = memory.memory_.pieces.begin();
  memory.wire_ = device.is_host() ? needs.wire : std::span(*next, wire_bytes);
  memory.gathering_ = *++next;
  for (const std::uint32_t piece : summed) memory.sums_[piece] = *++next;
  for (const std::uint32_t piece : needs.apart) memory.apart_[piece] = *++next;
  return memory;
}

Result<std::uint8_t*> DeviceMemory::copy_of(Copies& copies, std::uint32_t piece) {
  const auto& all = plan_->pieces;
  if (copies.pieces[piece] != nullptr || all[piece].num_elems == 0) return copies.pieces[piece];
  std::vector<std::size_t> sizes(all.size());
  for (std::size_t p = 0; p < all.size(); ++p) {
    const bool is_own = is_part(part_, plan_->tensors[all[p].tensor].on_cpus);
    if (!is_own || (device_->is_host() && p != piece)) continue;
    sizes[p] = static_cast<std::size_t>(all[p].num_elems * copies.element_bytes);
  }
  auto made = TRY(device_->allocate(sizes));
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (sizes[p] > 0) copies.pieces[p] = made.pieces[p];
  }
  copies.memory.push_back(std::move(made));
  return copies.pieces[piece];
}

namespace {

bool adds_up(const Task& task) {
  return task.kind == TaskKind::Spread || task.kind == TaskKind::Join;
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
    if (task.on_cpus) mark_slots(task, marked);
    if (adds_up(task) && !adds_there[codec_of(plan, task)]) mark_slots(task, marked);
    if (task.kind == TaskKind::Exchange && !transport.takes_device_memory(task.exchange))
      mark_slots(task, marked);
  }
  for (bool has_grown = true; has_grown;) {
    has_grown = mark_overlaps(own.slots, marked);
    for (const Task& task : own.tasks) {
      // Tasks whose slots must lie all on the host or all on the device.
      const bool is_in_one_place = task.kind == TaskKind::Exchange || adds_up(task);
      if (!is_in_one_place || !has_marked(task, marked)) continue;
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

// Sessions that stop where ranks meet. Inputs and outputs of collectives are copied to and from
// messages.
class DeviceTasks::Body : public ProtocolBody {
 public:
  Body(DeviceTasks& tasks, const Task& task, PieceMemory& memory)
      : tasks_(tasks), task_(task), memory_(memory) {}

  Result<std::optional<RankPoint>> begin(std::uint32_t piece) override {
    const auto from = TRY(tasks_.tensors_->source(piece, Value::Gradient, memory_));
    DeviceList& list = list_of(piece);
    CINCH_TRY(tasks_.give_inputs(list, {&piece, 1}, memory_));
    return list.sessions->begin_sync(list.entry_of(piece), from, update(piece), tasks_.step_);
  }
  Result<std::optional<RankPoint>> go_on(std::uint32_t piece, RankStatus all) override {
    const DeviceList& list = list_of(piece);
    auto point = list.sessions->continue_sync(list.entry_of(piece), all);
    if (!point || *point) return point;
    const TensorView made = update(piece);
    CINCH_TRY(tasks_.tensors_->give_updates({&piece, 1}, {&made, 1}, memory_));
    return point;
  }
  Status copy_out(std::uint32_t slot, std::span<std::uint8_t> wire,
                  std::span<const std::uint8_t> from) override {
    ComputeDevice& device = *tasks_.device_;
    if (tasks_.stays(slot))
      return device.copy(tasks_.memory_->slot(slot), from.data(), wire.size());
    const Status status = device.copy_out(wire, from.data());
    return status ? device.wait() : status;
  }
  Status copy_in(std::span<std::uint8_t> to, std::uint32_t slot,
                 std::span<const std::uint8_t> wire) override {
    ComputeDevice& device = *tasks_.device_;
    if (tasks_.stays(slot)) return device.copy(to.data(), tasks_.memory_->slot(slot), wire.size());
    const Status status = device.copy_in(to.data(), wire);
    // Wait: the next exchange may write there.
    return status ? device.wait() : status;
  }
  Status clear(std::uint32_t slot, std::span<std::uint8_t> wire) override {
    if (tasks_.stays(slot)) return tasks_.device_->clear(tasks_.memory_->slot(slot), wire.size());
    std::ranges::fill(wire, std::uint8_t{0});
    return Ok{};
  }
  DeviceList& list_of(std::uint32_t piece) const {
    return tasks_.lists_.of(task_, Site::Worker, piece);
  }
  /// Where the session writes the update.
  TensorView update(std::uint32_t piece) const {
    if (tasks_.device_->is_host()) return memory_.update(piece);
    return tasks_.tensors_->f32_view(tasks_.memory_->apart(piece), piece);
  }

 private:
  DeviceTasks& tasks_;
  const Task& task_;
  PieceMemory& memory_;
};

Status DeviceTasks::run_part(const Task& task, PieceMemory& memory) {
  Body body(*this, task, memory);
  return protocols_.run(task, memory, body);
}

// Runs on the network's lane, a piece at a time. Does not use the lists of the thread that computes
// meanwhile.
Status DeviceTasks::synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) {
  list_pieces(plan_, task, synchronised_);
  if (device_->turns() == nullptr) return synchronise_pieces(task, memory, ranks);
  RankTurn turn(ranks, *device_->turns());
  return synchronise_pieces(task, memory, turn);
}

Status DeviceTasks::synchronise_pieces(const Task& task, PieceMemory& memory, RankExchange& ranks) {
  const Body body(*this, task, memory);
  for (const std::uint32_t piece : synchronised_) {
    const auto from = TRY(tensors_->source(piece, Value::Gradient, memory));
    const TensorView made = body.update(piece);
    DeviceList& list = body.list_of(piece);
    Status status = give_inputs(list, {&piece, 1}, memory);
    if (status) status = list.sessions->sync(list.entry_of(piece), from, made, step_, ranks);
    if (!status) {
      return fail(status.error().kind, describe_piece(plan_, piece) + ": " + status.error().message,
                  status.error().native_code);
    }
    if (status = tensors_->give_updates({&piece, 1}, {&made, 1}, memory); !status) return status;
  }
  return Ok{};
}

}  // namespace cinch::rt
