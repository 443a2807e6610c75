// Runs all stages: from a request to the result of any of them. All functions throw ServiceError.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/emit/cuda.h"
#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/kernelize.h"
#include "compiler/service/compile_cache.h"
#include "compiler/service/front_end.h"
#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::service {
// Makes verified IR. `with_passes` false: as lowering left it. `steps` counts the passes' rewrites.
ir::Program make_ir(FrontEnd& front_end, const ProgramRequest& request, bool with_passes = true,
                    rt::StepLimit* steps = nullptr);
// Makes verified kernels with their costs.
kir::KernelProgram make_kernels(const ir::Program& program,
                                const codegen::KernelizeOptions& options);
// The steps that a request's limit permits.
rt::StepLimit step_limit(const ProgramRequest& request);
// Evaluates a constant function for passes, by the interpreter.
std::optional<std::vector<std::uint64_t>> evaluate_constant(const ir::Program& program,
                                                            const ir::Function& function);
// Options of CUDA text for an architecture, from the tuning tables.
codegen::CudaOptions tuned_cuda_options(const std::string& arch);
// Makes an image for a CPU of any level, even one that this machine cannot run. Uses the cache.
// Without NVRTC, an image for a GPU may hold code of an earlier architecture that runs on it, or
// PTX. `block_warps`, for CUDA: none for the number in the tuning tables.
rt::ProgramImage make_program_image(FrontEnd& front_end, const ProgramRequest& request,
                                    const codegen::Target& target,
                                    std::optional<std::uint32_t> block_warps = {});
// The bytes of an image file.
struct ImageBytes {
  std::vector<std::uint8_t> bytes;
  // Set if the code was compiled quickly for a caller that replaces it (find_better).
  std::optional<BetterCode> better;
};
// The same as bytes; the cache holds these already.
ImageBytes make_image_bytes(FrontEnd& front_end, const ProgramRequest& request,
                            const codegen::Target& target);
// Would these calls find the program in the cache?
bool is_kept(FrontEnd& front_end, const ProgramRequest& request, const codegen::Target& target);

// Recompiles code in the background that was compiled quickly because somebody waited. The process,
// `cinch cache improve`, ends when it is done, even if this process ends before. The better code
// goes into the cache and is used from the next time on. Results have the same bits.

// What to compile again.
struct Improvement {
  ProgramRequest request;
  codegen::Target target;
  std::uint32_t block_warps = 0;
};

// Writes JSON, which `cinch cache improve` reads from its standard input.
std::string write_improvement(const Improvement& improvement);
// Errors: InvalidArgument.
rt::Result<Improvement> read_improvement(std::string_view text);

// Can such a process work? It needs `cinch` beside this library and a cache that can be written;
// CINCH_BACKGROUND must not be off.
bool can_improve();

// Starts the process, or leaves that to one that was started less than half a minute ago. Returns
// false if none could be started: there is no `cinch` beside this library, or for a GPU no NVRTC.
bool improve_later(const Improvement& improvement);

}  // namespace cinch::service
