// The tasks in which a program meets other ranks: parts of a protocol, and whole protocols.
#include <algorithm>

#include "runtime/collective/rank_meeting.h"
#include "runtime/sync/device/device_tasks.h"

namespace cinch::rt {

// Sessions that stop where ranks meet. Inputs and outputs of collectives are copied to and from
// messages.
class DeviceTasks::Body : public ProtocolBody {
 public:
  Body(DeviceTasks& tasks, const Task& task, PieceMemory& memory)
      : tasks_(tasks), task_(task), memory_(memory) {}

  Result<std::optional<RankPoint>> begin(std::uint32_t piece) override {
    const auto from = tasks_.tensors_->source(piece, Value::Gradient, memory_);
    CINCH_TRY(from);
    const DeviceList& list = list_of(piece);
    return list.sessions->begin_sync(list.entry_of(piece), *from, update(piece), tasks_.step_);
  }
  Result<std::optional<RankPoint>> go_on(std::uint32_t piece, RankStatus all) override {
    const DeviceList& list = list_of(piece);
    auto point = list.sessions->continue_sync(list.entry_of(piece), all);
    if (!point || *point) return point;
    const TensorView made = update(piece);
    const Status status = tasks_.tensors_->give_updates({&piece, 1}, {&made, 1}, memory_);
    CINCH_TRY(status);
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
  const DeviceList& list_of(std::uint32_t piece) const {
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
    const auto from = tensors_->source(piece, Value::Gradient, memory);
    CINCH_TRY(from);
    const TensorView made = body.update(piece);
    const DeviceList& list = body.list_of(piece);
    Status status = list.sessions->sync(list.entry_of(piece), *from, made, step_, ranks);
    if (!status) {
      return fail(status.error().kind, describe_piece(plan_, piece) + ": " + status.error().message,
                  status.error().native_code);
    }
    if (status = tensors_->give_updates({&piece, 1}, {&made, 1}, memory); !status) return status;
  }
  return Ok{};
}

}  // namespace cinch::rt
