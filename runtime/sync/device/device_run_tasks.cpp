// The tasks that compute by themselves, one function each.
#include <fmt/format.h>

#include "runtime/call/list_session.h"
#include "runtime/sync/device/device_tasks.h"

namespace cinch::rt {

Status DeviceTasks::run(const Task& task, PieceMemory& memory) {
  const auto turn = take_turn(*device_);
  Status status = run_task(task, memory);
  if (status && is_deferred()) status = wire_->mark_end(task);
  return status;
}

Result<WirePlace> DeviceTasks::wire_of(const Task& exchange, PieceMemory& memory) {
  return wire_ == nullptr ? RankTasks::wire_of(exchange, memory)
                          : wire_->place_of(exchange, memory);
}

Status DeviceTasks::run_task(const Task& task, PieceMemory& memory) {
  switch (task.kind) {
    case TaskKind::Clear:
      return clear(task);
    case TaskKind::Encode:
      return is_dense(plan_, task) ? encode_dense(task, memory) : encode(task, memory);
    case TaskKind::Decode:
    case TaskKind::DecodeAdd:
      return is_dense(plan_, task) ? decode_dense(task, memory) : decode(task, memory);
    case TaskKind::Add:
      return add_gradient(task, memory);
    case TaskKind::Scale:
      return scale(task);
    case TaskKind::Finish:
      return finish(task, memory);
    case TaskKind::Spread:
      return spread(task, memory);
    case TaskKind::Join:
      return join(task, memory);
    case TaskKind::Part:
      return run_part(task, memory);
    case TaskKind::Fetch:
    case TaskKind::Deliver:
      return Ok{};  // the tensors lie in memory of the device that encodes
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

Status DeviceTasks::wait_for_copies(std::span<const std::uint32_t> slots) {
  const auto is_on_host = [this](std::uint32_t slot) { return !stays(slot); };
  return std::ranges::any_of(slots, is_on_host) ? device_->wait() : Ok{};
}

Status DeviceTasks::clear(const Task& task) {
  for (const std::uint32_t piece : listed(task)) {
    CINCH_TRY(device_->clear(memory_->sum(piece), tensors_->f32_bytes(piece)));
  }
  return Ok{};
}

// A list opens with the sessions of one site, so one piece may get an input at several sites.
Status DeviceTasks::give_inputs(DeviceList& list, std::span<const std::uint32_t> pieces,
                                const PieceMemory& memory) {
  if (list.only_decodes) return Ok{};
  for (const StateInfo& state : list.sessions->info().states) {
    if (!state.is_input) continue;
    for (const std::uint32_t piece : pieces) {
      const std::size_t entry = list.entry_of(piece);
      if (list.has_inputs[entry] != 0) continue;
      const auto array = TRY(tensors_->input(piece, state.name, memory));
      CINCH_TRY(list.sessions->set_input(entry, state.name, array));
    }
  }
  for (const std::uint32_t piece : pieces) list.has_inputs[list.entry_of(piece)] = 1;
  return Ok{};
}

// Puts all groups on the stream before it waits for the first.
Status DeviceTasks::encode(const Task& task, PieceMemory& memory) {
  inputs_.clear();
  payload_slots_.clear();
  for (std::size_t i = 0; i < task.groups.size(); ++i) CINCH_TRY(make_rooms(task, i, memory));
  CINCH_TRY(lists_.for_each(
      task, task.site, [&](DeviceList& list, const PieceList& pieces, std::size_t place) -> Status {
        CINCH_TRY(give_inputs(list, pieces, memory));
        return lists_.named(
            list.sessions->encode(lists_.call_on(list, pieces, step_),
                                  std::span(inputs_).subspan(place, pieces.size()),
                                  std::span(payload_slots_).subspan(place, pieces.size())),
            pieces);
      }));
  std::size_t first = 0;
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    CINCH_TRY(close_message(task, i, first, memory));
    first += plan_.groups[task.groups[i]].pieces.size();
  }
  return wait_for_copies(task.writes);
}

bool DeviceTasks::is_gathered(const Task& task, std::size_t index) const {
  const Group& group = plan_.groups[task.groups[index]];
  return !device_->is_host() && stays(task.writes[index]) && is_packed(task.writes[index]) &&
         group.pieces.size() > 1 && !has_known_sizes(group.codec);
}

std::uint64_t DeviceTasks::room_bytes(const DeviceList& list, const Group& group,
                                      std::uint32_t piece, std::uint32_t slot) const {
  const bool is_known = is_packed(slot) && has_known_sizes(group.codec);
  return is_known ? list.bounds[list.entry_of(piece)] : payload_room(group, plan_.pieces[piece]);
}

Status DeviceTasks::make_rooms(const Task& task, std::size_t index, PieceMemory& memory) {
  const std::uint32_t slot = task.writes[index];
  const Group& group = plan_.groups[task.groups[index]];
  const PieceList& pieces = group.pieces;
  std::uint8_t* at =
      is_gathered(task, index) ? memory_->gathering() : memory_->slot(task.writes[index]);
  for (std::size_t i = 0; i < index && is_gathered(task, index); ++i) {
    if (is_packed(task.writes[i])) at += gathering_room(task.writes[i]);
  }
  for (const std::uint32_t piece : pieces) {
    const auto from = TRY(tensors_->source(piece, task.from, memory));
    inputs_.push_back(from);
    const std::uint64_t bytes =
        room_bytes(lists_.of(task, task.site, pieces[0]), group, piece, slot);
    payload_slots_.push_back({{at, bytes}, {}});
    at += round_up_to_arena(bytes);
  }
  return Ok{};
}

// Sets the length of a message and places its payloads; on the host with zeros between them. On a
// GPU this waits if the host or the other ranks must know the length.
Status DeviceTasks::close_message(const Task& task, std::size_t index, std::size_t first,
                                  PieceMemory& memory) {
  const PieceList& pieces = plan_.groups[task.groups[index]].pieces;
  const auto payloads = std::span(payload_slots_).subspan(first, pieces.size());
  const std::uint32_t slot = task.writes[index];
  if (device_->is_host()) {
    close_in_place(slot, payloads, memory);
    return Ok{};
  }
  const bool is_sent = !stays(slot), moves = is_gathered(task, index);
  const bool asks = is_sent || (is_packed(slot) && !has_known_sizes(codec_of(plan_, task)));
  if (!pieces.empty()) {
    DeviceList& list = lists_.of(task, task.site, pieces[0]);
    CINCH_TRY(asks ? lists_.collect(list) : lists_.check(list, task, is_deferred()));
  }
  if (!is_sent && !is_packed(slot)) return Ok{};
  const std::span<std::uint8_t> message = memory.bytes_of(slot);
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const std::uint8_t* const from = payloads[i].room.data();
    const std::uint64_t bytes = asks
                                    ? static_cast<std::uint64_t>(lists_.outcomes()[i].payload_bytes)
                                    : payloads[i].room.size();
    const std::uint64_t begin = is_packed(slot)
                                    ? round_up_to_arena(used)
                                    : static_cast<std::uint64_t>(from - payloads[0].room.data());
    if (is_sent) {
      std::ranges::fill(message.subspan(used, begin - used), std::uint8_t{0});
      CINCH_TRY(device_->copy_out(message.subspan(begin, bytes), from));
    } else if (moves) {
      CINCH_TRY(device_->copy(memory_->slot(slot) + begin, from, bytes));
    }
    used = begin + bytes;
  }
  memory.set_used_bytes(slot, used);
  return Ok{};
}

void DeviceTasks::close_in_place(std::uint32_t slot, std::span<const PayloadSlot> payloads,
                                 PieceMemory& memory) {
  if (!is_packed(slot)) return;
  const std::span<std::uint8_t> message = memory.bytes_of(slot);
  offsets_.clear();
  sizes_.clear();
  for (const PayloadSlot& payload : payloads) {
    offsets_.push_back(static_cast<std::size_t>(payload.bytes.data() - message.data()));
    sizes_.push_back(payload.bytes.size());
  }
  memory.set_used_bytes(slot, close_arena({message.data(), message.size(), offsets_, sizes_}));
}

Status DeviceTasks::encode_dense(const Task& task, PieceMemory& memory) {
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    std::span<std::uint8_t> message = memory.bytes_of(task.writes[i]);
    std::uint8_t* to = memory_->slot(task.writes[i]);
    for (const std::uint32_t piece : plan_.groups[task.groups[i]].pieces) {
      const std::size_t bytes = tensors_->f32_bytes(piece), next = round_up_to_arena(bytes);
      const ConstTensorView value = tensors_->value_of(piece, task.from, memory);
      if (device_->is_host() && value.dtype != kF32) {
        const ArrayPair pair{to, static_cast<const std::uint8_t*>(value.data), value.num_elems};
        CINCH_TRY(device_->widen({&pair, 1}, value.dtype));
      } else {
        const auto from = TRY(tensors_->f32_source(piece, task.from, memory));
        CINCH_TRY(stays(task.writes[i]) ? device_->copy(to, from, bytes)
                                        : device_->copy_out(message.first(bytes), from));
      }
      message = message.subspan(std::min(next, message.size()));
      to += next;
    }
  }
  return wait_for_copies(task.writes);
}

Status DeviceTasks::decode(const Task& task, PieceMemory& memory) {
  const bool adds = task.kind == TaskKind::DecodeAdd;
  const Site site = decoding_site(info_of(codec_of(plan_, task)), task.site);
  CINCH_TRY(tensors_->find_targets(listed(task), adds ? Value::Sum : task.to, memory, outputs_));
  payloads_.clear();
  for (std::size_t i = 0; i < task.groups.size(); ++i)
    CINCH_TRY(find_payloads(task, i, site, memory));
  CINCH_TRY(lists_.for_each(
      task, site, [&](DeviceList& list, const PieceList& pieces, std::size_t place) {
        const ListCall call = lists_.call_on(list, pieces, step_);
        const auto payloads = std::span(payloads_).subspan(place, pieces.size());
        const auto outputs = std::span(outputs_).subspan(place, pieces.size());
        if (!adds) return lists_.named(list.sessions->decode(call, payloads, outputs), pieces);
        floats_.clear();
        for (const std::uint32_t piece : pieces) floats_.push_back(tensors_->sum_of(piece));
        return lists_.named(list.sessions->decode_add(call, payloads, floats_), pieces);
      }));
  CINCH_TRY(lists_.check(task, site, is_deferred()));
  if (!adds && task.to == Value::Update)
    CINCH_TRY(tensors_->give_updates(listed(task), outputs_, memory));
  return wait_for_copies(task.reads);
}

// For a message on a GPU whose lengths do not tell where payloads lie, the host reads them.
Status DeviceTasks::find_payloads(const Task& task, std::size_t index, Site site,
                                  PieceMemory& memory) {
  const Group& group = plan_.groups[task.groups[index]];
  const PieceList& pieces = group.pieces;
  if (pieces.empty()) return Ok{};
  const std::uint32_t slot = task.reads[index];
  const auto used = TRY(memory.used_bytes(slot));
  const bool is_alone = pieces.size() == 1;
  const bool is_known = is_alone || !is_packed(slot) || has_known_sizes(codec_of(plan_, task));
  if (device_->is_host() || !stays(slot) || !is_known) {
    return split_payloads(slot, group, used, memory);
  }
  std::uint64_t end = 0;
  for (const std::uint32_t piece : pieces) {
    const std::uint64_t begin = round_up_to_arena(end);
    const std::uint64_t bytes =
        is_alone ? used : room_bytes(lists_.of(task, site, pieces[0]), group, piece, slot);
    end = begin + bytes;
    payloads_.emplace_back(memory_->slot(slot) + begin, bytes);
  }
  if (end <= used) return Ok{};
  return fail(ErrorKind::CorruptPayload,
              fmt::format("{}: its payload ends at {} of a message of {}",
                          describe_piece(plan_, pieces.back()), end, used));
}

Status DeviceTasks::split_payloads(std::uint32_t slot, const Group& group, std::uint64_t used,
                                   PieceMemory& memory) {
  const auto message = memory.bytes_of(slot).first(used);
  const bool is_host = device_->is_host(), is_read = !is_host && stays(slot);
  Status status = is_read ? device_->copy_out(message, memory_->slot(slot)) : Status(Ok{});
  if (status && is_read) status = device_->wait();
  const std::size_t first = payloads_.size();
  if (status) status = split_message(plan_, group, message, is_packed(slot), payloads_);
  for (std::size_t i = first; status && !is_host && i < payloads_.size(); ++i) {
    const PayloadBytes there = payloads_[i];
    std::uint8_t* const room = memory_->slot(slot) + (there.data() - message.data());
    payloads_[i] = {room, there.size()};
    if (!is_read) status = device_->copy_in(room, there);
  }
  return status;
}

Status DeviceTasks::decode_dense(const Task& task, PieceMemory& memory) {
  const bool adds = task.kind == TaskKind::DecodeAdd;
  const PieceList& pieces = listed(task);
  CINCH_TRY(tensors_->find_targets(pieces, adds ? Value::Sum : task.to, memory, outputs_));
  pairs_.clear();
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    const bool is_here = stays(task.reads[i]);
    std::span<const std::uint8_t> message = memory.bytes_of(task.reads[i]);
    std::uint8_t* at = memory_->slot(task.reads[i]);
    for (const std::uint32_t piece : plan_.groups[task.groups[i]].pieces) {
      const std::size_t bytes = tensors_->f32_bytes(piece), next = round_up_to_arena(bytes);
      TensorView& output = outputs_[pairs_.size()];
      // On a host the message itself is narrowed to the user's tensor.
      const bool is_narrowed = output.dtype != kF32;
      if (is_narrowed) output = tensors_->f32_view(at, piece);
      auto* const to = static_cast<std::uint8_t*>(output.data);
      pairs_.push_back({to, at, tensors_->num_elems(piece)});
      if (!is_here) CINCH_TRY(device_->copy_in(adds ? at : to, message.first(bytes)));
      if (is_here && !adds && !is_narrowed) CINCH_TRY(device_->copy(to, at, bytes));
      message = message.subspan(std::min(next, message.size()));
      at += next;
    }
  }
  if (adds) CINCH_TRY(device_->add(pairs_));
  if (!adds && task.to == Value::Update)
    CINCH_TRY(tensors_->give_updates(pieces, outputs_, memory));
  return wait_for_copies(task.reads);
}

Status DeviceTasks::add_gradient(const Task& task, PieceMemory& memory) {
  pairs_.clear();
  for (const std::uint32_t piece : listed(task)) {
    const auto from = TRY(tensors_->f32_source(piece, Value::Gradient, memory));
    pairs_.push_back({memory_->sum(piece), from, tensors_->num_elems(piece)});
  }
  return device_->add(pairs_);
}

Status DeviceTasks::scale(const Task& task) {
  pairs_.clear();
  for (const std::uint32_t piece : listed(task)) {
    std::uint8_t* const sum = memory_->sum(piece);
    pairs_.push_back({sum, sum, tensors_->num_elems(piece)});
  }
  return device_->multiply(pairs_, task.factor);
}

Status DeviceTasks::finish(const Task& task, PieceMemory& memory) {
  const std::uint32_t codec = codec_of(plan_, task);
  const bool has_own = codec != kDense && (device_->is_host() || info_of(codec).has_finish);
  if (has_own) return finish_by_list(task, memory);
  const PieceList& pieces = listed(task);
  CINCH_TRY(tensors_->find_targets(pieces, task.to, memory, outputs_));
  pairs_.clear();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::uint8_t* const sum = memory_->sum(pieces[i]);
    if (outputs_[i].dtype != kF32) outputs_[i] = tensors_->f32_view(sum, pieces[i]);
    pairs_.push_back(
        {static_cast<std::uint8_t*>(outputs_[i].data), sum, tensors_->num_elems(pieces[i])});
  }
  CINCH_TRY(device_->divide(pairs_, static_cast<float>(options_.world)));
  if (task.to != Value::Update) return Ok{};
  return tensors_->give_updates(pieces, outputs_, memory);
}

Status DeviceTasks::finish_by_list(const Task& task, PieceMemory& memory) {
  CINCH_TRY(tensors_->find_targets(listed(task), task.to, memory, outputs_));
  const bool is_apart = !device_->is_host() && task.to == Value::Sum;
  for (std::size_t i = 0; is_apart && i < outputs_.size(); ++i) {
    outputs_[i].data = memory_->apart(pieces_[i]);
  }
  CINCH_TRY(lists_.for_each(
      task, Site::Worker, [&](DeviceList& list, const PieceList& pieces, std::size_t at) -> Status {
        if (list.sessions->info().has_finish) CINCH_TRY(give_inputs(list, pieces, memory));
        floats_.clear();
        for (const std::uint32_t piece : pieces) floats_.push_back(tensors_->sum_of(piece));
        const auto updates = std::span(outputs_).subspan(at, pieces.size());
        return lists_.named(
            list.sessions->finish(lists_.call_on(list, pieces, step_), floats_, updates), pieces);
      }));
  CINCH_TRY(lists_.check(task, Site::Worker, is_deferred()));
  const PieceList& pieces = listed(task);
  if (task.to == Value::Update) return tensors_->give_updates(pieces, outputs_, memory);
  for (std::size_t i = 0; is_apart && i < pieces.size(); ++i) {
    CINCH_TRY(
        device_->copy(memory_->sum(pieces[i]), outputs_[i].data, tensors_->f32_bytes(pieces[i])));
  }
  return Ok{};
}

}  // namespace cinch::rt
