// Opening a session on a GPU: launches planned, memory measured and made, constants and states
// sent.
#include <fmt/format.h>

#include "runtime/gpu/session/session_impl.h"

namespace cinch::rt {
namespace {

Status set_parameters(GpuSessionCore& core) {
  for (const auto& [name, value] : core.options.parameters) {
    if (Status status = core.parameters.set(name, value); !status) return status;
    if (Status status = core.largest.set(name, value); !status) return status;
  }
  for (const auto& [name, value] : core.options.largest_parameters) {
    if (Status status = core.largest.set(name, value); !status) return status;
  }
  return Ok{};
}

}  // namespace

Status GpuSession::Impl::make_memory(GpuStream stream) {
  const GpuDevice::Scope scope(core.device());
  if (Status status = memory.make(stream); !status) return status;
  return blocks.send(stream);
}

Status GpuSession::Impl::open(GpuStream stream) {
  const DType dtype = core.options.dtype;
  if (dtype != kF32 && dtype != kF16 && dtype != kBF16) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("tensors of {}: f32, f16 and bf16 are taken", dtype_name(dtype)));
  }
  core.stream = stream;
  views.reserve();
  if (Status status = set_parameters(core); !status) return status;
  if (Status status = GpuPlanning(core).plan(); !status) return status;
  if (Status status = memory.measure(); !status) return status;
  blocks.measure();
  states.measure();
  if (Status status = blocks.count(); !status) return status;
  blocks.batch_steps();
  if (Status status = core.order.open(); !status) return status;
  if (Status status = core.order.run(stream, [&] { return make_memory(stream); }); !status) {
    return status;
  }
  calls.note_what_follows_step();
  if (core.plan_of(EntryKind::Init).steps.empty()) return Ok{};
  return calls.call(EntryKind::Init, 0, stream);
}

}  // namespace cinch::rt
