// The tasks that compute, one function each.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/call/bucket.h"
#include "runtime/session/tensor_convert.h"
#include "runtime/sync/compute_tasks.h"

namespace cinch::rt {
namespace {

ConstTensorView const_view(const TensorView& view) {
  return {view.data, view.dtype, view.num_elems};
}

}  // namespace

ListCall ComputeTasks::call_on(const List& list, const PieceList& pieces) {
  which_.clear();
  for (const std::uint32_t piece : pieces) which_.push_back(list.entry[piece]);
  return {step_, which_};
}

const PieceList& ComputeTasks::listed(const Task& task) {
  list_pieces(plan_, task, pieces_);
  return pieces_;
}

Status ComputeTasks::lay_out(std::uint32_t piece, PayloadLayout& layout) {
  const List& list = list_of(plan_.tensors[plan_.pieces[piece].tensor].codec, Site::Worker);
  return (*list.sessions)[list.entry[piece]].lay_out_payload(step_, layout);
}

Status ComputeTasks::run(const Task& task, PieceMemory& memory) {
  const auto layouts = [this](std::uint32_t piece, PayloadLayout& layout) {
    return lay_out(piece, layout);
  };
  switch (task.kind) {
    case TaskKind::Clear:
      return clear(listed(task), memory);
    case TaskKind::Encode:
      return encode(task, memory);
    case TaskKind::Decode:
    case TaskKind::DecodeAdd:
      return decode(task, memory);
    case TaskKind::Add:
      return add_gradient(listed(task), memory);
    case TaskKind::Finish:
      return finish(task, memory);
    case TaskKind::Spread:
      return sums_of_payloads_.spread(task, memory, layouts);
    case TaskKind::Join:
      return sums_of_payloads_.join(task, memory, layouts);
    case TaskKind::Part:
      return run_part(task, memory);
    case TaskKind::Exchange:
    case TaskKind::Synchronise:
      break;
  }
  return fail(ErrorKind::Internal, "a task that does not compute");
}

Status ComputeTasks::clear(const PieceList& pieces, PieceMemory& memory) {
  for (const std::uint32_t piece : pieces) std::ranges::fill(memory.sum(piece), 0.0f);
  return Ok{};
}

// Rooms for the payloads of all groups of the task, each in its group's slot.
Status ComputeTasks::make_rooms(const Task& task, PieceMemory& memory) {
  payload_slots_.clear();
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    bounds_.clear();
    for (const std::uint32_t piece : plan_.groups[task.groups[i]].pieces) {
      bounds_.push_back(plan_.pieces[piece].bound_bytes);
    }
    offsets_.resize(bounds_.size());
    sizes_.resize(bounds_.size());
    const auto slot = memory.bytes_of(task.writes[i]);
    const Status status = arena_rooms(
        {slot.data(), round_up_to_arena(slot.size()), offsets_, sizes_}, bounds_, rooms_);
    if (!status) return status;
    for (const auto room : rooms_) payload_slots_.push_back({room, {}});
  }
  return Ok{};
}

// Payloads of a message one behind the other, and how long it is, where that is not known.
void ComputeTasks::close_messages(const Task& task, PieceMemory& memory) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    const auto slot = memory.bytes_of(task.writes[i]);
    offsets_.clear();
    sizes_.clear();
    for (std::size_t p = 0; p < plan_.groups[task.groups[i]].pieces.size(); ++p, ++next) {
      const auto bytes = payload_slots_[next].bytes;
      offsets_.push_back(static_cast<std::size_t>(bytes.data() - slot.data()));
      sizes_.push_back(bytes.size());
    }
    if (!memory.is_packed(task.writes[i])) continue;
    const std::size_t used = close_arena({slot.data(), slot.size(), offsets_, sizes_});
    memory.set_used_bytes(task.writes[i], used);
  }
}

Status ComputeTasks::encode(const Task& task, PieceMemory& memory) {
  if (is_dense(plan_, task)) return encode_dense(task, memory);
  const PieceList& pieces = listed(task);
  List& list = list_of(codec_of(plan_, task), task.site);
  inputs_.clear();
  for (const std::uint32_t piece : pieces) {
    inputs_.push_back(task.from == Value::Gradient ? memory.gradient(piece)
                                                   : const_view(memory.value(piece, task.from)));
  }
  if (Status status = make_rooms(task, memory); !status) return status;
  const ListStatus status = list.sessions->encode(call_on(list, pieces), inputs_, payload_slots_);
  if (!status) return named(status, pieces);
  for (const std::size_t entry : which_) {
    list.has_changed[entry] = (*list.sessions)[entry].has_changed_states().value_or(true);
  }
  close_messages(task, memory);
  return Ok{};
}

Result<std::span<const float>> ComputeTasks::gradient_as_f32(std::uint32_t piece,
                                                             const PieceMemory& memory) {
  const ConstTensorView gradient = memory.gradient(piece);
  const auto elems = static_cast<std::size_t>(gradient.num_elems);
  if (gradient.dtype == kF32) {
    return std::span(static_cast<const float*>(gradient.data), elems);
  }
  converted_.resize(elems);
  const Status status = convert_to_f32(gradient, converted_, runner_, options_.cancelled);
  if (!status) return tl::unexpected<Error>(status.error());
  return std::span<const float>(converted_);
}

Status ComputeTasks::encode_dense(const Task& task, PieceMemory& memory) {
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    std::uint8_t* to = memory.bytes_of(task.writes[i]).data();
    for (const std::uint32_t piece : plan_.groups[task.groups[i]].pieces) {
      std::span<const float> from = memory.sum(piece);
      if (task.from == Value::Gradient) {
        const auto gradient = gradient_as_f32(piece, memory);
        if (!gradient) return tl::unexpected<Error>(gradient.error());
        from = *gradient;
      }
      if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
      to += round_up_to_arena(from.size_bytes());
    }
  }
  return Ok{};
}

Status ComputeTasks::decode(const Task& task, PieceMemory& memory) {
  if (is_dense(plan_, task)) return decode_dense(task, memory);
  payloads_.clear();
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    const auto used = memory.used_bytes(task.reads[i]);
    if (!used) return tl::unexpected<Error>(used.error());
    const auto message = memory.bytes_of(task.reads[i]).first(*used);
    const Status status = split_message(plan_, plan_.groups[task.groups[i]].pieces, message,
                                        memory.is_packed(task.reads[i]), payloads_);
    if (!status) return status;
  }
  return decode_payloads(task, listed(task), memory);
}

Status ComputeTasks::decode_payloads(const Task& task, const PieceList& pieces,
                                     PieceMemory& memory) {
  const List& list =
      list_of(codec_of(plan_, task),
              decoding_site(options_.programs[codec_of(plan_, task)]->info(), task.site));
  outputs_.clear();
  sums_.clear();
  if (task.kind == TaskKind::DecodeAdd) {
    for (const std::uint32_t piece : pieces) sums_.push_back(memory.sum(piece));
    return named(list.sessions->decode_add(call_on(list, pieces), payloads_, sums_), pieces);
  }
  for (const std::uint32_t piece : pieces) outputs_.push_back(memory.value(piece, task.to));
  return named(list.sessions->decode(call_on(list, pieces), payloads_, outputs_), pieces);
}

Status ComputeTasks::decode_dense(const Task& task, PieceMemory& memory) {
  for (std::size_t i = 0; i < task.groups.size(); ++i) {
    const std::uint8_t* from = memory.bytes_of(task.reads[i]).data();
    for (const std::uint32_t piece : plan_.groups[task.groups[i]].pieces) {
      const auto elems = static_cast<std::size_t>(plan_.pieces[piece].num_elems);
      // Slots and payloads begin at multiples of 16.
      const std::span values(reinterpret_cast<const float*>(from), elems);
      const Status status =
          task.kind == TaskKind::DecodeAdd
              ? add_f32(memory.sum(piece), values, runner_, options_.cancelled)
              : convert_from_f32(values, memory.value(piece, task.to), runner_, options_.cancelled);
      if (!status) return status;
      from += round_up_to_arena(values.size_bytes());
    }
  }
  return Ok{};
}

Status ComputeTasks::add_gradient(const PieceList& pieces, PieceMemory& memory) {
  for (const std::uint32_t piece : pieces) {
    const auto gradient = gradient_as_f32(piece, memory);
    if (!gradient) return tl::unexpected<Error>(gradient.error());
    const Status status = add_f32(memory.sum(piece), *gradient, runner_, options_.cancelled);
    if (!status) return status;
  }
  return Ok{};
}

Status ComputeTasks::finish(const Task& task, PieceMemory& memory) {
  const PieceList& pieces = listed(task);
  const std::uint32_t codec = codec_of(plan_, task);
  if (codec != kDense) {
    sums_.clear();
    outputs_.clear();
    for (const std::uint32_t piece : pieces) {
      sums_.push_back(memory.sum(piece));
      outputs_.push_back(memory.value(piece, task.to));
    }
    const List& list = list_of(codec, Site::Worker);
    return named(list.sessions->finish(call_on(list, pieces), sums_, outputs_), pieces);
  }
  return finish_dense(pieces, task.to, memory);
}

Status ComputeTasks::finish_dense(const PieceList& pieces, Value to, PieceMemory& memory) {
  for (const std::uint32_t piece : pieces) {
    const std::span<float> sum = memory.sum(piece);
    const TensorView update = memory.value(piece, to);
    const bool is_f32 = update.dtype == kF32;
    const std::span<float> mean =
        is_f32 ? std::span(static_cast<float*>(update.data), sum.size()) : sum;
    const auto world = static_cast<float>(options_.world);
    Status status = divide_f32(sum, world, mean, runner_, options_.cancelled);
    if (status && !is_f32) status = convert_from_f32(mean, update, runner_, options_.cancelled);
    if (!status) return status;
  }
  return Ok{};
}

// The sessions of one codec.
class ComputeTasks::Body : public ProtocolBody {
 public:
  Body(List& list, const PieceMemory& memory, std::uint64_t step)
      : list_(list), memory_(memory), step_(step) {}

  Result<std::optional<RankPoint>> begin(std::uint32_t piece) override {
    return session(piece).begin_sync(memory_.gradient(piece), memory_.update(piece), step_);
  }
  Result<std::optional<RankPoint>> go_on(std::uint32_t piece, RankStatus all) override {
    auto point = session(piece).continue_sync(all);
    list_.has_changed[list_.entry[piece]] = session(piece).has_changed_states().value_or(true);
    return point;
  }
  Status copy_out(std::uint32_t /*slot*/, std::span<std::uint8_t> wire,
                  std::span<const std::uint8_t> from) override {
    if (!wire.empty()) std::memcpy(wire.data(), from.data(), wire.size());
    return Ok{};
  }
  Status copy_in(std::span<std::uint8_t> to, std::uint32_t /*slot*/,
                 std::span<const std::uint8_t> wire) override {
    if (!wire.empty()) std::memcpy(to.data(), wire.data(), wire.size());
    return Ok{};
  }
  Status clear(std::uint32_t /*slot*/, std::span<std::uint8_t> wire) override {
    std::ranges::fill(wire, std::uint8_t{0});
    return Ok{};
  }

 private:
  Session& session(std::uint32_t piece) const { return (*list_.sessions)[list_.entry[piece]]; }

  List& list_;
  const PieceMemory& memory_;
  std::uint64_t step_;
};

Status ComputeTasks::run_part(const Task& task, PieceMemory& memory) {
  Body body(list_of(codec_of(plan_, task), Site::Worker), memory, step_);
  return protocols_.run(task, memory, body);
}

Status ComputeTasks::synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) {
  List& list = list_of(codec_of(plan_, task), Site::Worker);
  // Not the list of the thread that computes meanwhile.
  list_pieces(plan_, task, synchronised_);
  for (const std::uint32_t piece : synchronised_) {
    const std::size_t entry = list.entry[piece];
    const Status status =
        (*list.sessions)[entry].sync(memory.gradient(piece), memory.update(piece), step_, ranks);
    list.has_changed[entry] = (*list.sessions)[entry].has_changed_states().value_or(true);
    if (!status) {
      return fail(status.error().kind, describe_piece(plan_, piece) + ": " + status.error().message,
                  status.error().native_code);
    }
  }
  return Ok{};
}

}  // namespace cinch::rt
