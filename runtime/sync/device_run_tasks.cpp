// The tasks that compute on a GPU, one function each. Messages that are the host's memory (see
// device_wire.h) are copied there when they are encoded, and to the device before they are decoded.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/collective/rank_threads.h"
#include "runtime/sync/device_tasks.h"

namespace cinch::rt {

// Sessions that stop where ranks meet. What collectives exchange is copied to where messages lie.
class DeviceTasks::Body : public ProtocolBody {
 public:
  Body(DeviceTasks& tasks, PieceMemory& memory) : tasks_(tasks), memory_(memory) {}

  Result<std::optional<RankPoint>> begin(std::uint32_t piece) override {
    if (tasks_.plan_.pieces[piece].num_elems == 0) return std::nullopt;
    const auto from = tasks_.gradient(piece, memory_);
    if (!from) return tl::unexpected<Error>(from.error());
    return session(piece).begin_sync(*from, tasks_.memory_->apart(piece), tasks_.step_,
                                     tasks_.stream_);
  }
  Result<std::optional<RankPoint>> go_on(std::uint32_t piece, RankStatus all) override {
    auto point = session(piece).continue_sync(all);
    if (!point || *point) return point;
    const Status status = end(piece);
    if (!status) return tl::unexpected<Error>(status.error());
    return point;
  }
  Status copy_out(std::uint32_t slot, std::span<std::uint8_t> wire,
                  std::span<const std::uint8_t> from) override {
    const auto at = reinterpret_cast<GpuAddress>(from.data());
    if (tasks_.wire_->has(slot)) return tasks_.copy(tasks_.memory_->slot(slot), at, wire.size());
    const Status status = tasks_.copy_out(wire, at);
    return status ? tasks_.wait() : status;
  }
  Status copy_in(std::span<std::uint8_t> to, std::uint32_t slot,
                 std::span<const std::uint8_t> wire) override {
    const auto at = reinterpret_cast<GpuAddress>(to.data());
    if (tasks_.wire_->has(slot)) return tasks_.copy(at, tasks_.memory_->slot(slot), wire.size());
    const Status status = tasks_.copy_in(at, wire);
    // The next exchange may write there.
    return status ? tasks_.wait() : status;
  }

  Status clear(std::uint32_t slot, std::span<std::uint8_t> wire) override {
    if (!tasks_.wire_->has(slot)) {
      std::ranges::fill(wire, std::uint8_t{0});
      return Ok{};
    }
    const GpuDevice& device = *tasks_.device_;
    const GpuCode code =
        device.driver().fill(tasks_.memory_->slot(slot), 0, wire.size(), tasks_.stream_);
    return device.status(code, "clearing a message");
  }

 private:
  GpuSession& session(std::uint32_t piece) { return *tasks_.unit_of(piece, Site::Worker).session; }
  // What went wrong on the device, and the update.
  Status end(std::uint32_t piece) {
    const GpuAddress made = tasks_.memory_->apart(piece);
    const auto outcomes = session(piece).collect(tasks_.stream_);
    if (!outcomes) return tl::unexpected<Error>(outcomes.error());
    if (const Status& status = outcomes->front().status; !status) return status;
    return tasks_.give_updates({&piece, 1}, {&made, 1}, memory_);
  }

  DeviceTasks& tasks_;
  PieceMemory& memory_;
};

Status DeviceTasks::run(const Task& task, PieceMemory& memory) {
  const std::lock_guard lock(turns());
  const GpuDevice::Scope scope(*device_);
  Status status = run_task(task, memory);
  if (status && wire_->is_used()) status = wire_->mark_end(task);
  return status;
}

Result<WirePlace> DeviceTasks::wire_of(const Task& exchange, PieceMemory& memory) {
  return wire_->place_of(exchange, memory);
}

Status DeviceTasks::run_task(const Task& task, PieceMemory& memory) {
  switch (task.kind) {
    case TaskKind::Clear:
      return clear(task);
    case TaskKind::Encode:
      return encode(task, memory);
    case TaskKind::Decode:
    case TaskKind::DecodeAdd:
      return decode(task, memory);
    case TaskKind::Add:
      return add_gradient(task, memory);
    case TaskKind::Finish:
      return finish(task, memory);
    case TaskKind::Spread:
      return spread(task, memory);
    case TaskKind::Join:
      return join(task, memory);
    case TaskKind::Part: {
      Body body(*this, memory);
      return protocols_.run(task, memory, body);
    }
    case TaskKind::Exchange:
    case TaskKind::Synchronise:
      break;
  }
  return fail(ErrorKind::Internal, "a task that does not compute");
}

const PieceList& DeviceTasks::listed(const Task& task) {
  list_pieces(plan_, task, pieces_);
  return pieces_;
}

Status DeviceTasks::clear(const Task& task) {
  for (const std::uint32_t piece : listed(task)) {
    const auto bytes = static_cast<std::size_t>(plan_.pieces[piece].num_elems * 4);
    if (bytes == 0) continue;
    const GpuCode code = device_->driver().fill(memory_->sum(piece), 0, bytes, stream_);
    if (Status status = device_->status(code, "clearing a sum"); !status) return status;
  }
  return Ok{};
}

// All groups are on the stream before the first is waited for.
Status DeviceTasks::encode(const Task& task, PieceMemory& memory) {
  if (is_dense(plan_, task)) return encode_dense(task, memory);
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    if (Status status = encode_group(task, i, memory); !status) return status;
  }
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    const Status status =
        wire_->has(task.writes[i]) ? close_group(task, i, memory) : send_group(task, i, memory);
    if (!status) return status;
  }
  return wait_for_copies(task.writes);
}

Status DeviceTasks::wait_for_copies(std::span<const std::uint32_t> slots) const {
  const auto is_on_host = [this](std::uint32_t slot) { return !wire_->has(slot); };
  return std::ranges::any_of(slots, is_on_host) ? wait() : Ok{};
}

bool DeviceTasks::is_gathered(const Task& task, std::size_t index) const {
  const Group& group = plan_.groups[task.groups[index]];
  return wire_->has(task.writes[index]) && is_packed(task.writes[index]) &&
         group.pieces.size() > 1 && !info_of(group.codec).wire.counts.empty();
}

GpuAddress DeviceTasks::encoding_room(const Task& task, std::size_t index) const {
  if (!is_gathered(task, index)) return memory_->slot(task.writes[index]);
  GpuAddress room = memory_->gathering();
  for (std::size_t i = 0; i < index; ++i) {
    if (is_packed(task.writes[i])) room += gathering_room(task.writes[i]);
  }
  return room;
}

Result<std::uint64_t> DeviceTasks::room_bytes(const Unit& unit, std::size_t index,
                                              std::uint32_t slot) const {
  if (!is_packed(slot) || !has_known_sizes(unit)) {
    return plan_.pieces[unit.pieces[index]].bound_bytes;
  }
  const auto bytes = unit.session->payload_bound(index, step_);
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  return static_cast<std::uint64_t>(*bytes);
}

Status DeviceTasks::encode_group(const Task& task, std::size_t index, PieceMemory& memory) {
  const PieceList& pieces = plan_.groups[task.groups[index]].pieces;
  if (pieces.empty()) return Ok{};
  Unit& unit = unit_of(pieces[0], task.site);
  inputs_.clear();
  payload_rooms_.clear();
  GpuAddress at = encoding_room(task, index);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto from = source(pieces[i], task.from, memory);
    if (!from) return tl::unexpected<Error>(from.error());
    inputs_.push_back(*from);
    const auto bytes = room_bytes(unit, i, task.writes[index]);
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    payload_rooms_.push_back({at, static_cast<std::int64_t>(*bytes)});
    at += round_up_to_arena(*bytes);
  }
  return unit.session->encode(inputs_, payload_rooms_, step_, stream_);
}

// How long a message is that stays on the device; that is waited for where others must know it.
Status DeviceTasks::close_group(const Task& task, std::size_t index, PieceMemory& memory) {
  const PieceList& pieces = plan_.groups[task.groups[index]].pieces;
  const std::uint32_t slot = task.writes[index];
  if (pieces.empty()) {
    memory.set_used_bytes(slot, 0);
    return Ok{};
  }
  Unit& unit = unit_of(pieces[0], task.site);
  const bool waits = is_packed(slot) && !has_known_sizes(unit), moves = is_gathered(task, index);
  if (Status status = waits ? collect(unit) : check(unit, task); !status) return status;
  if (!is_packed(slot)) return Ok{};
  GpuAddress from = encoding_room(task, index);
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto room = room_bytes(unit, i, slot);
    if (!room) return tl::unexpected<Error>(room.error());
    const std::uint64_t begin = round_up_to_arena(used), bytes = waits ? sizes_[i] : *room;
    Status status = moves ? copy(memory_->slot(slot) + begin, from, bytes) : Status(Ok{});
    if (!status) return status;
    from += round_up_to_arena(*room);
    used = begin + bytes;
  }
  memory.set_used_bytes(slot, used);
  return Ok{};
}

// Payloads of a message to the host; packed ones with zeros between them, and how long it is.
Status DeviceTasks::send_group(const Task& task, std::size_t index, PieceMemory& memory) {
  const PieceList& pieces = plan_.groups[task.groups[index]].pieces;
  const std::uint32_t slot = task.writes[index];
  const std::span<std::uint8_t> message = memory.bytes_of(slot);
  std::uint64_t used = 0, from = 0;
  if (!pieces.empty()) {
    if (Status status = collect(unit_of(pieces[0], task.site)); !status) return status;
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto room = room_bytes(unit_of(pieces[0], task.site), i, slot);
    if (!room) return tl::unexpected<Error>(room.error());
    const std::uint64_t begin = is_packed(slot) ? round_up_to_arena(used) : from;
    std::ranges::fill(message.subspan(used, begin - used), std::uint8_t{0});
    const Status status = copy_out(message.subspan(begin, sizes_[i]), memory_->slot(slot) + from);
    if (!status) return status;
    used = begin + sizes_[i];
    from += round_up_to_arena(*room);
  }
  memory.set_used_bytes(slot, used);
  return Ok{};
}

Status DeviceTasks::encode_dense(const Task& task, PieceMemory& memory) {
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    const bool stays = wire_->has(task.writes[i]);
    std::span<std::uint8_t> message = memory.bytes_of(task.writes[i]);
    GpuAddress to = memory_->slot(task.writes[i]);
    for (const std::uint32_t piece : plan_.groups[task.groups[i]].pieces) {
      const auto from = source(piece, task.from, memory);
      if (!from) return tl::unexpected<Error>(from.error());
      const auto bytes = static_cast<std::size_t>(plan_.pieces[piece].num_elems * 4);
      const std::size_t next = round_up_to_arena(bytes);
      const Status status = stays ? copy(to, *from, bytes) : copy_out(message.first(bytes), *from);
      if (!status) return status;
      message = message.subspan(std::min(next, message.size()));
      to += next;
    }
  }
  return wait_for_copies(task.writes);
}

Status DeviceTasks::decode(const Task& task, PieceMemory& memory) {
  if (is_dense(plan_, task)) return decode_dense(task, memory);
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    if (plan_.groups[task.groups[i]].pieces.empty()) continue;
    if (Status status = decode_group(task, i, memory); !status) return status;
  }
  return wait_for_copies(task.reads);
}

Status DeviceTasks::copy_payloads_in(std::uint32_t slot, const PieceList& pieces,
                                     std::uint64_t used, PieceMemory& memory) {
  const auto message = memory.bytes_of(slot).first(used);
  const bool stays = wire_->has(slot);
  Status status = stays ? copy_out(message, memory_->slot(slot)) : Status(Ok{});
  if (status && stays) status = wait();
  payloads_.clear();
  if (status) status = split_message(plan_, pieces, message, is_packed(slot), payloads_);
  for (std::size_t i = 0; status && i < payloads_.size(); ++i) {
    const auto at = static_cast<std::uint64_t>(payloads_[i].data() - message.data());
    const GpuAddress room = memory_->slot(slot) + at;
    payload_rooms_.push_back({room, static_cast<std::int64_t>(payloads_[i].size())});
    if (!stays) status = copy_in(room, payloads_[i]);
  }
  return status;
}

// Of a message on the device, where its lengths do not say where they are, the host looks.
Status DeviceTasks::find_payloads(const Task& task, std::size_t index, const Unit& unit,
                                  PieceMemory& memory) {
  const PieceList& pieces = plan_.groups[task.groups[index]].pieces;
  const std::uint32_t slot = task.reads[index];
  payload_rooms_.clear();
  const auto used = memory.used_bytes(slot);
  if (!used) return tl::unexpected<Error>(used.error());
  const bool is_alone = pieces.size() == 1;
  if (!wire_->has(slot) || (is_packed(slot) && !is_alone && !has_known_sizes(unit))) {
    return copy_payloads_in(slot, pieces, *used, memory);
  }
  std::uint64_t begin = 0, end = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto bytes = is_alone ? Result<std::uint64_t>(*used) : room_bytes(unit, i, slot);
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    begin = round_up_to_arena(end);
    end = begin + *bytes;
    payload_rooms_.push_back({memory_->slot(slot) + begin, static_cast<std::int64_t>(*bytes)});
  }
  if (end <= *used) return Ok{};
  return fail(ErrorKind::CorruptPayload,
              fmt::format("{}: its payload ends at {} of a message of {}",
                          describe_piece(plan_, pieces.back()), end, *used));
}

Status DeviceTasks::decode_group(const Task& task, std::size_t index, PieceMemory& memory) {
  const PieceList& pieces = plan_.groups[task.groups[index]].pieces;
  const ProgramInfo& info = info_of(codec_of(plan_, task));
  Unit& unit = unit_of(pieces[0], decoding_site(info, task.site));
  if (Status status = find_payloads(task, index, unit, memory); !status) return status;
  const bool adds = task.kind == TaskKind::DecodeAdd;
  outputs_.clear();
  for (const std::uint32_t piece : pieces) {
    const auto to = target(piece, adds ? Value::Sum : task.to, memory);
    if (!to) return tl::unexpected<Error>(to.error());
    outputs_.push_back(*to);
  }
  Status status = adds ? unit.session->decode_add(payload_rooms_, outputs_, step_, stream_)
                       : unit.session->decode(payload_rooms_, outputs_, step_, stream_);
  if (status) status = check(unit, task);
  if (status && !adds && task.to == Value::Update) status = give_updates(pieces, outputs_, memory);
  return status;
}

Status DeviceTasks::decode_dense(const Task& task, PieceMemory& memory) {
  const bool adds = task.kind == TaskKind::DecodeAdd;
  pairs_.clear();
  outputs_.clear();
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    const bool stays = wire_->has(task.reads[i]);
    std::span<const std::uint8_t> message = memory.bytes_of(task.reads[i]);
    GpuAddress at = memory_->slot(task.reads[i]);
    for (const std::uint32_t piece : plan_.groups[task.groups[i]].pieces) {
      const std::int64_t elems = plan_.pieces[piece].num_elems;
      const auto bytes = static_cast<std::size_t>(elems * 4);
      const auto to = target(piece, adds ? Value::Sum : task.to, memory);
      if (!to) return tl::unexpected<Error>(to.error());
      outputs_.push_back(*to);
      pairs_.push_back({*to, at, elems});
      Status status = Ok{};
      if (!stays) status = copy_in(adds ? at : *to, message.first(bytes));
      if (stays && !adds) status = copy(*to, at, bytes);
      if (!status) return status;
      const std::size_t next = round_up_to_arena(bytes);
      message = message.subspan(std::min(next, message.size()));
      at += next;
    }
  }
  Status status = adds ? arrays_->add(pairs_) : Status(Ok{});
  if (status && !adds && task.to == Value::Update) {
    status = give_updates(listed(task), outputs_, memory);
  }
  return status ? wait_for_copies(task.reads) : status;
}

Status DeviceTasks::add_gradient(const Task& task, PieceMemory& memory) {
  pairs_.clear();
  for (const std::uint32_t piece : listed(task)) {
    const auto from = gradient(piece, memory);
    if (!from) return tl::unexpected<Error>(from.error());
    pairs_.push_back({memory_->sum(piece), *from, plan_.pieces[piece].num_elems});
  }
  return arrays_->add(pairs_);
}

Status DeviceTasks::finish(const Task& task, PieceMemory& memory) {
  const bool has_own = codec_of(plan_, task) != kDense && info_of(codec_of(plan_, task)).has_finish;
  if (has_own) return finish_by_program(task, memory);
  const PieceList& pieces = listed(task);
  pairs_.clear();
  outputs_.clear();
  for (const std::uint32_t piece : pieces) {
    const auto to = target(piece, task.to, memory);
    if (!to) return tl::unexpected<Error>(to.error());
    outputs_.push_back(*to);
    pairs_.push_back({*to, memory_->sum(piece), plan_.pieces[piece].num_elems});
  }
  Status status = arrays_->divide(pairs_, options_.world);
  if (!status || task.to != Value::Update) return status;
  return give_updates(pieces, outputs_, memory);
}

Status DeviceTasks::finish_by_program(const Task& task, PieceMemory& memory) {
  for (const std::uint32_t group : task.groups) {
    const PieceList& pieces = plan_.groups[group].pieces;
    if (pieces.empty()) continue;
    inputs_.clear();
    outputs_.clear();
    for (const std::uint32_t piece : pieces) {
      const auto to = task.to == Value::Sum ? Result<GpuAddress>(memory_->apart(piece))
                                            : target(piece, task.to, memory);
      if (!to) return tl::unexpected<Error>(to.error());
      inputs_.push_back(memory_->sum(piece));
      outputs_.push_back(*to);
    }
    Unit& unit = unit_of(pieces[0], Site::Worker);
    Status status = unit.session->finish(inputs_, outputs_, step_, stream_);
    if (status) status = check(unit, task);
    if (status && task.to == Value::Update) status = give_updates(pieces, outputs_, memory);
    for (std::size_t i = 0; i < pieces.size() && status && task.to == Value::Sum; ++i) {
      const auto bytes = static_cast<std::size_t>(plan_.pieces[pieces[i]].num_elems * 4);
      status = copy(inputs_[i], outputs_[i], bytes);
    }
    if (!status) return status;
  }
  return Ok{};
}

// A piece at a time, as ranks on CPUs do it.
Status DeviceTasks::synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) {
  RankTurn turn(ranks, turns());
  const GpuDevice::Scope scope(*device_);
  // Not the list of the thread that computes meanwhile.
  list_pieces(plan_, task, synchronised_);
  for (const std::uint32_t piece : synchronised_) {
    if (plan_.pieces[piece].num_elems == 0) continue;
    const Status status = synchronise_piece(piece, memory, turn);
    if (!status) return status;
  }
  return Ok{};
}

Status DeviceTasks::synchronise_piece(std::uint32_t piece, PieceMemory& memory,
                                      RankExchange& ranks) {
  const auto from = gradient(piece, memory);
  if (!from) return tl::unexpected<Error>(from.error());
  const GpuAddress to = memory_->apart(piece);
  Unit& unit = unit_of(piece, Site::Worker);
  Status status = unit.session->sync({&*from, 1}, {&to, 1}, step_, stream_, ranks);
  if (!status) {
    return fail(status.error().kind, describe_piece(plan_, piece) + ": " + status.error().message,
                status.error().native_code);
  }
  status = collect(unit);
  return status ? give_updates({&piece, 1}, {&to, 1}, memory) : status;
}

}  // namespace cinch::rt
