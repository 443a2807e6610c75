// One tensor of f16 or bf16 through a session on a GPU and one on the CPU.
#pragma once
#include <memory>
#include <string>

#include "runtime/gpu/session/session.h"
#include "runtime/session/session.h"

namespace cinch::testing {

/// Encodes and decodes a tensor of the shape in `options`, whose world, worker and seed hold for
/// both. Returns nothing, or what differs.
std::string compare_types(const std::shared_ptr<const rt::LoadedProgram>& on_cpu,
                          const std::shared_ptr<const rt::GpuProgram>& on_gpu,
                          const rt::SessionOptions& options, DType dtype);

}  // namespace cinch::testing
