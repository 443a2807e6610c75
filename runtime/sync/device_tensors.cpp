// The user's tensors of a rank on a GPU: memory of the host or of the device, f32 or narrower.
#include <algorithm>

#include "runtime/call/tensor_view.h"
#include "runtime/sync/device_tasks.h"

namespace cinch::rt {
namespace {

GpuAddress address_of(const void* data) {
  return reinterpret_cast<GpuAddress>(data);
}

}  // namespace

Status DeviceTasks::copy_in(GpuAddress to, std::span<const std::uint8_t> from) const {
  if (from.empty()) return Ok{};
  const GpuCode code = device_->driver().copy_to_device(to, from.data(), from.size(), stream_);
  return device_->status(code, "copying to the device");
}

Status DeviceTasks::copy_out(std::span<std::uint8_t> to, GpuAddress from) const {
  if (to.empty()) return Ok{};
  const GpuCode code = device_->driver().copy_to_host(to.data(), from, to.size(), stream_);
  return device_->status(code, "copying from the device");
}

Status DeviceTasks::copy(GpuAddress to, GpuAddress from, std::size_t size_bytes) const {
  if (size_bytes == 0) return Ok{};
  const GpuCode code = device_->driver().copy_on_device(to, from, size_bytes, stream_);
  return device_->status(code, "copying on the device");
}

Status DeviceTasks::check_user(const void* data, std::size_t which) {
  if (checked_[which] == data) return Ok{};
  Status status = device_->check_memory(address_of(data));
  if (status) {
    checked_[which] = data;
  } else {
    const auto piece = static_cast<std::uint32_t>(which / 2);
    status.error().message = describe_piece(plan_, piece) + ": " + status.error().message;
  }
  return status;
}

Result<GpuAddress> DeviceTasks::gradient(std::uint32_t piece, PieceMemory& memory) {
  const ConstTensorView view = memory.gradient(piece);
  if (view.num_elems == 0) return GpuAddress{0};
  if (options_.device.has_tensors) {
    const Status status = check_user(view.data, 2 * std::size_t{piece});
    if (!status) return tl::unexpected<Error>(status.error());
    if (view.dtype == kF32) return address_of(view.data);
  }
  if (!has_gradient_[piece]) {
    if (Status status = copy_gradient(piece, view); !status) {
      return tl::unexpected<Error>(status.error());
    }
    has_gradient_[piece] = true;
  }
  return memory_->values(piece);
}

Status DeviceTasks::copy_gradient(std::uint32_t piece, ConstTensorView view) {
  const auto values = memory_->values(piece);
  if (!values) return tl::unexpected<Error>(values.error());
  const auto bytes = static_cast<std::size_t>(view.num_elems * view.dtype.bits / 8);
  const std::span<const std::uint8_t> from(static_cast<const std::uint8_t*>(view.data), bytes);
  if (view.dtype == kF32) return copy_in(*values, from);
  GpuAddress halves = address_of(view.data);
  if (!options_.device.has_tensors) {
    const auto copied = memory_->halves(piece);
    if (!copied) return tl::unexpected<Error>(copied.error());
    halves = *copied;
    if (Status status = copy_in(halves, from); !status) return status;
  }
  const GpuArrayPair pair{*values, halves, view.num_elems};
  return arrays_->widen({&pair, 1}, view.dtype);
}

Result<GpuAddress> DeviceTasks::target(std::uint32_t piece, Value which, PieceMemory& memory) {
  if (which == Value::Sum) return memory_->sum(piece);
  const TensorView view = memory.update(piece);
  if (view.num_elems == 0) return GpuAddress{0};
  if (!options_.device.has_tensors) return memory_->values(piece);
  const Status status = check_user(view.data, 2 * std::size_t{piece} + 1);
  if (!status) return tl::unexpected<Error>(status.error());
  return view.dtype == kF32 ? Result<GpuAddress>(address_of(view.data)) : memory_->values(piece);
}

Result<GpuAddress> DeviceTasks::source(std::uint32_t piece, Value which, PieceMemory& memory) {
  if (which == Value::Gradient) return gradient(piece, memory);
  auto found = target(piece, which, memory);
  const TensorView view = memory.update(piece);
  // Of an update that was narrowed, what it has become.
  if (!found || which == Value::Sum || view.dtype == kF32 || view.num_elems == 0) return found;
  Status status = options_.device.has_tensors ? Status(Ok{}) : wait();
  if (status) status = copy_gradient(piece, {view.data, view.dtype, view.num_elems});
  if (!status) return tl::unexpected<Error>(status.error());
  return memory_->values(piece);
}

Status DeviceTasks::give_updates(std::span<const std::uint32_t> pieces,
                                 std::span<const GpuAddress> from, PieceMemory& memory) {
  for (const DType dtype : {kF16, kBF16}) {
    const Status status = narrow_updates(pieces, from, dtype, memory);
    if (!status) return status;
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (Status status = give_update(pieces[i], from[i], memory); !status) return status;
  }
  return options_.device.has_tensors || wire_->is_used() ? Status(Ok{}) : wait();
}

Status DeviceTasks::narrow_updates(std::span<const std::uint32_t> pieces,
                                   std::span<const GpuAddress> from, DType dtype,
                                   PieceMemory& memory) {
  pairs_.clear();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const TensorView view = memory.update(pieces[i]);
    if (view.dtype != dtype || view.num_elems == 0) continue;
    const auto to = options_.device.has_tensors ? Result<GpuAddress>(address_of(view.data))
                                                : memory_->halves(pieces[i]);
    if (!to) return tl::unexpected<Error>(to.error());
    pairs_.push_back({*to, from[i], view.num_elems});
  }
  return arrays_->narrow(pairs_, dtype);
}

Status DeviceTasks::give_update(std::uint32_t piece, GpuAddress from, PieceMemory& memory) {
  const TensorView view = memory.update(piece);
  const bool is_f32 = view.dtype == kF32;
  const auto bytes = static_cast<std::size_t>(view.num_elems * view.dtype.bits / 8);
  if (options_.device.has_tensors) {
    const bool is_there = !is_f32 || from == address_of(view.data);
    return is_there ? Status(Ok{}) : copy(address_of(view.data), from, bytes);
  }
  if (bytes == 0) return Ok{};
  const auto copied = is_f32 ? Result<GpuAddress>(from) : memory_->halves(piece);
  if (!copied) return tl::unexpected<Error>(copied.error());
  return copy_out({static_cast<std::uint8_t*>(view.data), bytes}, *copied);
}

}  // namespace cinch::rt
