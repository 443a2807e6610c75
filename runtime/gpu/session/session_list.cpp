// A session on a GPU as a list: views become addresses, and the stream is the one that was named
// last.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/gpu/session/session_impl.h"

namespace cinch::rt {
namespace {

tl::unexpected<ListError> wrong(std::size_t place, std::string message) {
  return tl::unexpected<ListError>(
      ListError{{ErrorKind::InvalidArgument, std::move(message)}, place});
}

GpuAddress address_of(const void* data) {
  return reinterpret_cast<GpuAddress>(data);
}

}  // namespace

// Calls read(), which sets the arrays of the call, before the call.
template <typename Read>
ListStatus GpuSession::Impl::call_list(EntryKind kind, const ListCall& on, const Read& read) {
  return guarded_list(in_use, [&]() -> ListStatus {
    for (std::size_t i = 0; i < on.which.size(); ++i) {
      if (on.which[i] != i || on.which.size() != num_tensors()) {
        return wrong(i, "a call on a GPU is on all tensors of the session, in their order");
      }
    }
    for (auto* addresses : {&read_from, &read_to}) addresses->clear();
    read_payloads.clear();
    if (ListStatus status = read(); !status) return status;
    Status status = call_with(kind, {read_from, read_payloads, read_to}, on.step, stream);
    if (!status) return tl::unexpected<ListError>(ListError{std::move(status.error())});
    return Ok{};
  });
}

template <typename View>
ListStatus GpuSession::Impl::read_views(std::span<const View> views, DType dtype,
                                        std::vector<GpuAddress>& to) const {
  for (std::size_t i = 0; i < views.size() && i < num_tensors(); ++i) {
    const ConstTensorView view(views[i]);
    if (view.dtype != dtype) {
      return wrong(i, fmt::format("a tensor of {}, {} is expected", dtype_name(view.dtype),
                                  dtype_name(dtype)));
    }
    if (view.num_elems != facts[i].num_elems()) {
      return wrong(i, fmt::format("a tensor of {} elements, the session has {}", view.num_elems,
                                  facts[i].num_elems()));
    }
    to.push_back(address_of(view.data));
  }
  return Ok{};
}

ListStatus GpuSession::Impl::read_payload(PayloadBytes bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size < 0) return wrong(read_payloads.size(), fmt::format("a payload of {}", bytes.size()));
  read_payloads.push_back({address_of(bytes.data()), size});
  return Ok{};
}

ListStatus GpuSession::encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                              std::span<PayloadSlot> payloads) {
  return impl_->call_list(EntryKind::Encode, call, [&]() -> ListStatus {
    ListStatus status = impl_->read_views(gradients, impl_->options.dtype, impl_->read_from);
    for (std::size_t i = 0; i < payloads.size() && status; ++i) {
      status = impl_->read_payload(payloads[i].room);
    }
    return status;
  });
}

template <typename View>
ListStatus GpuSession::Impl::decode_list(EntryKind kind, const ListCall& call,
                                         std::span<const PayloadBytes> payloads,
                                         std::span<const View> outputs, DType dtype) {
  return call_list(kind, call, [&]() -> ListStatus {
    ListStatus status = read_views(outputs, dtype, read_to);
    for (std::size_t i = 0; i < payloads.size() && status; ++i) status = read_payload(payloads[i]);
    return status;
  });
}

ListStatus GpuSession::decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                              std::span<const TensorView> outputs) {
  return impl_->decode_list(EntryKind::Decode, call, payloads, outputs, impl_->options.dtype);
}

ListStatus GpuSession::decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                                  std::span<const std::span<float>> outputs) {
  return impl_->decode_list(EntryKind::DecodeAdd, call, payloads, outputs, kF32);
}

ListStatus GpuSession::finish(const ListCall& call, std::span<const std::span<float>> sums,
                              std::span<const TensorView> updates) {
  return impl_->call_list(EntryKind::Finish, call, [&]() -> ListStatus {
    ListStatus status = impl_->read_views(sums, kF32, impl_->read_from);
    if (status) status = impl_->read_views(updates, impl_->options.dtype, impl_->read_to);
    for (std::size_t i = 0; status && i < sums.size() && i < updates.size(); ++i) {
      if (sums[i].empty() || updates[i].data != sums[i].data()) continue;
      return wrong(i, "on a GPU an update is not its sum's memory");
    }
    return status;
  });
}

void GpuSession::use_stream(void* stream) {
  impl_->stream = static_cast<GpuStream>(stream);
}
std::size_t GpuSession::state_bytes() const {
  if (impl_->options.only_decodes) return 0;
  const ParameterValues parameters(info());
  std::int64_t total = 0;
  for (const TensorFacts& facts : impl_->facts) {
    for (const StateInfo& state : info().states) {
      total += rt::state_bytes(info(), state, host_env(facts, parameters, 0)).value_or(0);
    }
  }
  return static_cast<std::size_t>(total);
}
Result<std::vector<TensorOutcome>> GpuSession::collect() {
  return collect(impl_->stream);
}
Status GpuSession::prepare(EntryKind kind, std::uint64_t step) {
  return prepare(kind, step, impl_->stream);
}
Result<std::vector<std::uint8_t>> GpuSession::states_as_bytes(std::size_t tensor) const {
  return states_as_bytes(tensor, impl_->stream);
}
Status GpuSession::set_states(std::size_t tensor, std::span<const std::uint8_t> bytes) {
  return set_states(tensor, bytes, impl_->stream);
}
Status GpuSession::keep_states() {
  return keep_states(impl_->stream);
}
Status GpuSession::take_back_states() {
  return take_back_states(impl_->stream);
}
Status GpuSession::take_back_tensor(std::size_t tensor) {
  return take_back_states(impl_->stream, tensor);
}

}  // namespace cinch::rt
