// Bodies of core.h.
#include "runtime/gpu/session/core.h"

#include <algorithm>
#include <utility>

#include "runtime/tuning/tuning.h"

namespace cinch::rt {
namespace {

TensorFacts facts_of(const ProgramInfo& info, const GpuSessionOptions& options,
                     const ListTensor& shape) {
  return facts_for(info, {shape.rows, shape.cols, options.world, options.worker, options.seed,
                          shape.tensor, shape.piece});
}

}  // namespace

GpuSessionCore::GpuSessionCore(std::shared_ptr<const GpuProgram> loaded, GpuSessionOptions opts)
    : program(std::move(loaded)),
      options(std::move(opts)),
      tuning(options.tuning ? *options.tuning : gpu_tuning(program->device()->arch())),
      layout(gpu_tensor_layout(program->image())),
      parameters(program->info()),
      largest(program->info()),
      order(program->device()) {
  for (const ListTensor& shape : options.tensors) {
    facts.push_back(facts_of(program->info(), options, shape));
  }
  memos.resize(facts.size());
}

BufferIndex GpuSessionCore::buffer_of(BufferRole role, std::uint32_t role_index) const {
  const auto& buffers = image().buffers;
  for (BufferIndex b = 0; b < buffers.size(); ++b) {
    if (buffers[b].role == role && buffers[b].role_index == role_index) return b;
  }
  return kNoIndex;
}

HostEnv GpuSessionCore::env(std::size_t tensor, std::uint64_t step) const {
  HostEnv env = host_env(facts[tensor], parameters, step);
  memos[tensor].bind(info().exprs, env);
  env.memo = &memos[tensor];
  return env;
}

Result<StepBounds> GpuSessionCore::over_steps(const HostExprPool& pool, HostExprId expr,
                                              const TensorFacts& tensor) const {
  auto first = bounds_over_steps(pool, expr, host_env(tensor, parameters, 0));
  auto second = bounds_over_steps(pool, expr, host_env(tensor, largest, 0));
  if (!first) return first;
  if (!second) return second;
  return StepBounds{std::min(first->least, second->least), std::max(first->most, second->most)};
}

}  // namespace cinch::rt
