// How large states are, and states as they were before a step. A call writes the next states beside
// the present ones and then says which are which; so they are taken back by that word, but where a
// program needs copies.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/call/entries.h"
#include "runtime/gpu/session/session_impl.h"
#include "runtime/image/buffer_size.h"

namespace cinch::rt {

// A state's memory is as large as the state, which is read and written whole.
Status GpuSession::Impl::check_states(std::size_t tensor) const {
  for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
    const BufferInfo& buffer = image().buffers[b];
    if (!is_state(buffer.role)) continue;
    for (const ParameterValues* values : {&parameters, &largest}) {
      const HostEnv at = host_env(facts[tensor], *values, 0);
      const auto bytes = rt::state_bytes(info(), info().states[buffer.role_index], at);
      CINCH_TRY(bytes);
      const auto held = buffer_bytes(image(), b, at);
      CINCH_TRY(held);
      if (*held == *bytes) continue;
      return fail(ErrorKind::Internal, fmt::format("state buffer {} of {} bytes, its state has {}",
                                                   buffer.name, *held, *bytes));
    }
  }
  return Ok{};
}

void GpuSession::Impl::measure_kept_states() {
  if (!options.keeps_states || info().states.empty()) return;
  const auto keep = [this](GpuArena::Piece own, std::size_t first, std::size_t count) {
    if (own != GpuArena::kNone)
      kept.push_back({own, arena.add(arena.size_bytes(own)), first, count});
  };
  keep(swapped, 0, num_tensors());
  if (!needs_copies_of_states(image())) return;
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      if (is_state(image().buffers[b].role)) keep(pieces[t][b], t, 1);
    }
  }
}

Status GpuSession::Impl::check_keeps() const {
  if (options.keeps_states) return Ok{};
  return fail(ErrorKind::InvalidArgument, "a session that keeps no states");
}

Status GpuSession::Impl::copy_states(GpuAddress to, GpuAddress from, std::size_t size,
                                     GpuStream stream) const {
  if (size == 0) return Ok{};
  return device().status(device().driver().copy_on_device(to, from, size, stream),
                         "copying states");
}

Status GpuSession::Impl::keep_states(GpuStream stream) const {
  if (Status status = check_keeps(); !status) return status;
  const GpuDevice::Scope scope(device());
  for (const Kept& one : kept) {
    const Status status = copy_states(arena.address(one.copy), arena.address(one.own),
                                      arena.size_bytes(one.own), stream);
    if (!status) return status;
  }
  return Ok{};
}

Status GpuSession::Impl::take_back_states(std::size_t first, std::size_t count,
                                          GpuStream stream) const {
  if (Status status = check_keeps(); !status) return status;
  const GpuDevice::Scope scope(device());
  for (const Kept& one : kept) {
    const std::size_t begin = std::max(first, one.first_tensor);
    const std::size_t end = std::min(first + count, one.first_tensor + one.num_tensors);
    if (begin >= end) continue;
    const std::size_t share = arena.size_bytes(one.own) / one.num_tensors;
    const std::size_t at = (begin - one.first_tensor) * share;
    const Status status = copy_states(arena.address(one.own) + at, arena.address(one.copy) + at,
                                      (end - begin) * share, stream);
    if (!status) return status;
  }
  return Ok{};
}

Status GpuSession::keep_states(GpuStream stream) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->order.run(stream, [&] { return impl_->keep_states(stream); });
  });
}

Status GpuSession::take_back_states(GpuStream stream) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->order.run(
        stream, [&] { return impl_->take_back_states(0, impl_->num_tensors(), stream); });
  });
}

Status GpuSession::take_back_states(GpuStream stream, std::size_t tensor) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->order.run(stream, [&] { return impl_->take_back_states(tensor, 1, stream); });
  });
}

}  // namespace cinch::rt
