// One tensor of f16 or bf16 through a session on a GPU and one on the CPU.
#pragma once
#include <memory>
#include <string>

#include "runtime/gpu/session/session.h"
#include "runtime/session/session.h"

namespace cinch::testing {

/// Encodes and decodes a tensor with the shape in `options`, whose world, worker and seed apply to
/// both. Returns nothing, or the difference.
std::string compare_types(const std::shared_ptr<const rt::LoadedProgram>& on_cpu,
                          const std::shared_ptr<const rt::GpuProgram>& on_gpu,
                          const rt::SessionOptions& options, DType dtype);

}  // namespace cinch::testing
