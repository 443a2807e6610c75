// Bodies of views.h.
#include "runtime/gpu/session/views.h"

#include <fmt/format.h>

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
    if (ListStatus status = read(); !status) return status;
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
