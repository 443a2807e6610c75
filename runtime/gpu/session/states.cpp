#include <fmt/format.h>

#include <algorithm>

#include "runtime/call/joins.h"
#include "runtime/gpu/session/session_impl.h"

namespace cinch::rt {
Result<std::vector<GpuAddress>> GpuStates::addresses(std::size_t tensor, GpuStream stream) {
  CINCH_TRY(core().order.enter(stream));
  std::vector<std::uint32_t> words(info().states.size());
  auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
  const GpuAddress from = memory_.swapped() + 4 * words.size() * tensor;
  CINCH_TRY(device().read({bytes, 4 * words.size()}, from, stream));
  std::vector<GpuAddress> found;
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    const BufferIndex in_place = buffer_of(BufferRole::StateInPlace, i);
    const auto role = words[i] != 0 ? BufferRole::StateNext : BufferRole::State;
    found.push_back(
        memory_.own_address(tensor, in_place != kNoIndex ? in_place : buffer_of(role, i)));
  }
  return found;
}

Result<std::vector<std::vector<std::uint8_t>>> GpuStates::read(std::size_t tensor,
                                                               GpuStream stream) {
  CINCH_TRY(check_holds_states(core().options.only_decodes));
  const auto held = TRY(addresses(tensor, stream));
  std::vector<std::vector<std::uint8_t>> states;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const auto size = TRY(rt::state_bytes(info(), info().states[i], env(tensor, 0)));
    auto& bytes = states.emplace_back(static_cast<std::size_t>(size));
    CINCH_TRY(device().read(bytes, held[i], stream));
  }
  return states;
}

StateFileKey GpuStates::key(std::size_t tensor) const {
  return {image().fingerprint, core().facts[tensor].rows, core().facts[tensor].cols};
}

Result<std::vector<std::uint8_t>> GpuStates::as_bytes(std::size_t tensor, GpuStream stream) {
  return write_states(key(tensor), state_views(info(), TRY(read(tensor, stream))));
}

Status GpuStates::set(std::size_t tensor, std::span<const std::uint8_t> bytes, GpuStream stream) {
  const auto held = TRY(read(tensor, stream));
  const auto given = TRY(read_states(bytes, key(tensor), state_views(info(), held)));
  const auto to = TRY(addresses(tensor, stream));
  auto from = given.begin();
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (info().states[i].is_input) continue;
    CINCH_TRY(device().write(to[i], *from++, stream));
  }
  return Ok{};
}

Status GpuStates::set_input(std::size_t tensor, std::string_view name, const ConstTensorView& array,
                            GpuStream stream) {
  CINCH_TRY(check_holds_states(core().options.only_decodes));
  const auto index = TRY(find_input_array(info(), name));
  CINCH_TRY(check_input_array(name, array, core().facts[tensor].num_elems()));
  if (array.dtype != kF32) {
    return fail(ErrorKind::InvalidArgument, fmt::format("input {}: {}, on a GPU inputs are f32",
                                                        name, dtype_name(array.dtype)));
  }
  if (array.num_elems == 0) return Ok{};
  const auto size = TRY(rt::state_bytes(info(), info().states[index], env(tensor, 0)));
  if (size != static_cast<std::int64_t>(byte_count(array))) {
    return fail(ErrorKind::Overflow, fmt::format("input {} takes {} bytes, there are {}", name,
                                                 size, byte_count(array)));
  }
  CINCH_TRY(device().check_memory(reinterpret_cast<GpuAddress>(array.data)));
  const GpuAddress to = memory_.own_address(tensor, buffer_of(BufferRole::State, index));
  return core().order.run(stream, [&]() -> Status {
    const GpuDevice::Scope scope(device());
    return copy(to, reinterpret_cast<GpuAddress>(array.data), byte_count(array), stream);
  });
}

// ---- as they were before a step ----

void GpuStates::measure() {
  if (!core().options.keeps_states || !info().has_states()) return;
  const auto note = [this](GpuArena::Piece own, std::size_t first, std::size_t count) {
    if (own != GpuArena::kNone)
      kept_.push_back({own, memory_.arena().add(memory_.arena().size_bytes(own)), first, count});
  };
  note(memory_.swapped_piece(), 0, num_tensors());
  if (!needs_copies_of_states(image())) return;
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      const BufferInfo& buffer = image().buffers[b];
      const bool is_kept = is_state(buffer.role) && !info().states[buffer.role_index].is_input;
      if (is_kept) note(memory_.piece(t, b), t, 1);
    }
  }
}

Status GpuStates::check_keeps() const {
  if (core().options.keeps_states) return Ok{};
  return fail(ErrorKind::InvalidArgument, "a session that keeps no states");
}

Status GpuStates::copy(GpuAddress to, GpuAddress from, std::size_t size, GpuStream stream) const {
  if (size == 0) return Ok{};
  return device().status(device().driver().copy_on_device(to, from, size, stream),
                         "copying states");
}

Status GpuStates::keep(GpuStream stream) {
  return core().order.run(stream, [&]() -> Status {
    CINCH_TRY(check_keeps());
    const GpuDevice::Scope scope(device());
    for (const Kept& one : kept_) {
      CINCH_TRY(copy(memory_.arena().address(one.copy), memory_.arena().address(one.own),
                     memory_.arena().size_bytes(one.own), stream));
    }
    return Ok{};
  });
}

Status GpuStates::take_back(std::size_t first, std::size_t count, GpuStream stream) {
  return core().order.run(stream, [&]() -> Status {
    CINCH_TRY(check_keeps());
    const GpuDevice::Scope scope(device());
    for (const Kept& one : kept_) {
      const std::size_t begin = std::max(first, one.first_tensor);
      const std::size_t end = std::min(first + count, one.first_tensor + one.num_tensors);
      if (begin >= end) continue;
      const std::size_t share = memory_.arena().size_bytes(one.own) / one.num_tensors;
      const std::size_t at = (begin - one.first_tensor) * share;
      CINCH_TRY(copy(memory_.arena().address(one.own) + at, memory_.arena().address(one.copy) + at,
                     (end - begin) * share, stream));
    }
    return Ok{};
  });
}

namespace {

tl::unexpected<ListError> wrong(std::size_t place, std::string message) {
  return tl::unexpected<ListError>(
      ListError{{ErrorKind::InvalidArgument, std::move(message)}, place});
}

GpuAddress address_of(const void* data) {
  return reinterpret_cast<GpuAddress>(data);
}

}  // namespace

void GpuViews::reserve() {
  for (auto* addresses : {&from_, &to_}) addresses->reserve(num_tensors());
  payloads_.reserve(num_tensors());
}

// Calls read(), which sets the arrays of the call, before the call.
template <typename Read>
ListStatus GpuViews::call_list(EntryKind kind, const ListCall& on, const Read& read) {
  return guarded_list(core().in_use, [&]() -> ListStatus {
    for (std::size_t i = 0; i < on.which.size(); ++i) {
      if (on.which[i] != i || on.which.size() != num_tensors()) {
        return wrong(i, "a call on a GPU is on all tensors of the session, in their order");
      }
    }
    for (auto* addresses : {&from_, &to_}) addresses->clear();
    payloads_.clear();
    CINCH_TRY(read());
    Status status = calls_.call_with(kind, {from_, payloads_, to_}, on.step, core().stream);
    if (!status) return tl::unexpected<ListError>(ListError{std::move(status.error())});
    return Ok{};
  });
}

template <typename View>
ListStatus GpuViews::read_views(std::span<const View> views, DType dtype,
                                std::vector<GpuAddress>& to) const {
  for (std::size_t i = 0; i < views.size() && i < num_tensors(); ++i) {
    const ConstTensorView view(views[i]);
    if (view.dtype != dtype) {
      return wrong(i, fmt::format("a tensor of {}, {} is expected", dtype_name(view.dtype),
                                  dtype_name(dtype)));
    }
    if (view.num_elems != core().facts[i].num_elems()) {
      return wrong(i, fmt::format("a tensor of {} elements, the session has {}", view.num_elems,
                                  core().facts[i].num_elems()));
    }
    to.push_back(address_of(view.data));
  }
  return Ok{};
}

ListStatus GpuViews::read_payload(PayloadBytes bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size < 0) return wrong(payloads_.size(), fmt::format("a payload of {}", bytes.size()));
  payloads_.push_back({address_of(bytes.data()), size});
  return Ok{};
}

ListStatus GpuViews::encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                            std::span<PayloadSlot> payloads) {
  return call_list(EntryKind::Encode, call, [&]() -> ListStatus {
    ListStatus status = read_views(gradients, core().options.dtype, from_);
    for (std::size_t i = 0; i < payloads.size() && status; ++i) {
      status = read_payload(payloads[i].room);
    }
    return status;
  });
}

template <typename View>
ListStatus GpuViews::decode_list(EntryKind kind, const ListCall& call,
                                 std::span<const PayloadBytes> payloads,
                                 std::span<const View> outputs, DType dtype) {
  return call_list(kind, call, [&]() -> ListStatus {
    ListStatus status = read_views(outputs, dtype, to_);
    for (std::size_t i = 0; i < payloads.size() && status; ++i) status = read_payload(payloads[i]);
    return status;
  });
}

ListStatus GpuViews::decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                            std::span<const TensorView> outputs) {
  return decode_list(EntryKind::Decode, call, payloads, outputs, core().options.dtype);
}

ListStatus GpuViews::decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                                std::span<const std::span<float>> outputs) {
  return decode_list(EntryKind::DecodeAdd, call, payloads, outputs, kF32);
}

ListStatus GpuViews::finish(const ListCall& call, std::span<const std::span<float>> sums,
                            std::span<const TensorView> updates) {
  return call_list(EntryKind::Finish, call, [&]() -> ListStatus {
    ListStatus status = read_views(sums, kF32, from_);
    if (status) status = read_views(updates, core().options.dtype, to_);
    for (std::size_t i = 0; status && i < sums.size() && i < updates.size(); ++i) {
      if (sums[i].empty() || updates[i].data != sums[i].data()) continue;
      return wrong(i, "on a GPU an update is not its sum's memory");
    }
    return status;
  });
}

}  // namespace cinch::rt
