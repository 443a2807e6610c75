// The stages joined: from a request to any of them. All throw ServiceError.
#pragma once
#include "codegen/emit/cuda.h"
#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/kernelize.h"
#include "compiler/service/front_end.h"
#include "runtime/image/image.h"

namespace cinch::service {

// Verified IR; `with_passes` false: as lowering left it.
// `steps` counts what passes do.
ir::Program make_ir(FrontEnd& front_end, const ProgramRequest& request, bool with_passes = true,
                    rt::StepLimit* steps = nullptr);
// Verified kernels with their costs.
kir::KernelProgram make_kernels(const ir::Program& program,
                                const codegen::KernelizeOptions& options);
// What a request's limit leaves.
rt::StepLimit step_limit(const ProgramRequest& request);
// How passes evaluate constant functions: by the interpreter.
std::optional<std::vector<std::uint64_t>> evaluate_constant(const ir::Program& program,
                                                            const ir::Function& function);
// How CUDA text for an architecture is made: by the numbers of the tuning tables.
codegen::CudaOptions tuned_cuda_options(const std::string& arch);
// For a CPU of any level, run or not on this machine. Kept in and taken from the cache. Where there
// is no NVRTC, a program for a GPU may be code of an earlier architecture that runs on it, or PTX.
// `block_warps`, of CUDA: none for the number of the tuning tables.
rt::ProgramImage make_program_image(FrontEnd& front_end, const ProgramRequest& request,
                                    const codegen::Target& target,
                                    std::optional<std::uint32_t> block_warps = {});
// The same as the bytes of an image file, which those in the cache are already.
std::vector<std::uint8_t> make_image_bytes(FrontEnd& front_end, const ProgramRequest& request,
                                           const codegen::Target& target);
// Would they find the program in the cache?
bool is_kept(FrontEnd& front_end, const ProgramRequest& request, const codegen::Target& target);

}  // namespace cinch::service
