// Codecs over sessions on a GPU, NVIDIA's or the emulated one.
#pragma once
#include <memory>

#include "compiler/driver/codec.h"
#include "runtime/gpu/program.h"

namespace cinch::driver {

// Opens the device that options name: "cuda" or "emulated". Throws CommandError (Unavailable).
std::shared_ptr<rt::GpuDevice> open_gpu(const ExecutionOptions& options, int ordinal = 0);

// `bindings` are values of run-time parameters.
std::unique_ptr<Codec> open_gpu_codec(const std::shared_ptr<const rt::GpuProgram>& program,
                                      const std::vector<sema::Binding>& bindings,
                                      const RunOptions& options, Shape shape, std::uint32_t worker,
                                      std::uint32_t world);

}  // namespace cinch::driver
