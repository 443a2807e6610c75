// Opening a session on a GPU: launches planned, memory measured and made, constants and states
// sent.
#include <fmt/format.h>

#include "runtime/gpu/session/session_impl.h"

namespace cinch::rt {
namespace {

Status set_parameters(GpuSessionCore& core) {
  for (const auto& [name, value] : core.options.parameters) {
    CINCH_TRY(core.parameters.set(name, value));
    CINCH_TRY(core.largest.set(name, value));
  }
  for (const auto& [name, value] : core.options.largest_parameters) {
    CINCH_TRY(core.largest.set(name, value));
  }
  return Ok{};
}

}  // namespace

Status GpuSession::Impl::make_memory(GpuStream stream) {
  const GpuDevice::Scope scope(core.device());
  CINCH_TRY(memory.make(stream));
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
  CINCH_TRY(set_parameters(core));
  CINCH_TRY(GpuPlanning(core).plan());
  for (GpuCallPlan& plan : core.plans) plan.kernels = &core.program->kernels();
  CINCH_TRY(memory.measure());
  blocks.measure();
  states.measure();
  CINCH_TRY(blocks.count());
  blocks.batch_steps();
  CINCH_TRY(core.order.open());
  if (Status status = core.order.run(stream, [&] { return make_memory(stream); }); !status) {
    return status;
  }
  calls.note_what_follows_step();
  if (core.plan_of(EntryKind::Init).steps.empty()) return Ok{};
  return calls.call(EntryKind::Init, 0, stream);
}

}  // namespace cinch::rt
