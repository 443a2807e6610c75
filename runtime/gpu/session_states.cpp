// How large states are, and states as they were before a step. A call writes the next states beside
// the present ones and then says which are which; so they are taken back by that word, but where a
// program needs copies.
#include <fmt/format.h>

#include "runtime/call/entries.h"
#include "runtime/gpu/session_impl.h"
#include "runtime/image/buffer_size.h"

namespace cinch::rt {

// A state's memory is as large as the state, which is read and written whole.
Status GpuSession::Impl::check_states(std::size_t tensor) const {
  for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
    const BufferInfo& buffer = image().buffers[b];
    if (!is_state(buffer.role)) continue;
    for (const ParameterValues* values : {&parameters, &largest}) {
      const HostEnv at = host_env(facts[tensor], *values, 0);
      const auto bytes = state_bytes(info(), info().states[buffer.role_index], at);
      if (!bytes) return tl::unexpected<Error>(bytes.error());
      const auto held = buffer_bytes(image(), b, at);
      if (!held) return tl::unexpected<Error>(held.error());
      if (*held == *bytes) continue;
      return fail(ErrorKind::Internal, fmt::format("state buffer {} of {} bytes, its state has {}",
                                                   buffer.name, *held, *bytes));
    }
  }
  return Ok{};
}

void GpuSession::Impl::measure_kept_states() {
  if (!options.keeps_states || info().states.empty()) return;
  const auto keep = [this](GpuArena::Piece own) {
    if (own != GpuArena::kNone) kept.push_back({own, arena.add(arena.size_bytes(own))});
  };
  keep(swapped);
  if (!needs_copies_of_states(image())) return;
  for (std::size_t t = 0; t < num_tensors(); ++t) {
    for (BufferIndex b = 0; b < image().buffers.size(); ++b) {
      if (is_state(image().buffers[b].role)) keep(pieces[t][b]);
    }
  }
}

Status GpuSession::Impl::copy_kept(bool takes_back, GpuStream stream) const {
  if (!options.keeps_states) {
    return fail(ErrorKind::InvalidArgument, "a session that keeps no states");
  }
  const GpuDevice::Scope scope(device());
  for (const Kept& one : kept) {
    const GpuAddress own = arena.address(one.own), copy = arena.address(one.copy);
    const std::size_t size = arena.size_bytes(one.own);
    if (size == 0) continue;
    const GpuCode code = takes_back ? device().driver().copy_on_device(own, copy, size, stream)
                                    : device().driver().copy_on_device(copy, own, size, stream);
    if (Status status = device().status(code, "copying states"); !status) return status;
  }
  return Ok{};
}

Status GpuSession::keep_states(GpuStream stream) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->order.run(stream, [&] { return impl_->copy_kept(false, stream); });
  });
}

Status GpuSession::take_back_states(GpuStream stream) {
  return guarded_use(impl_->in_use, [&] {
    return impl_->order.run(stream, [&] { return impl_->copy_kept(true, stream); });
  });
}

}  // namespace cinch::rt
