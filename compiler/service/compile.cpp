// From text to image; see compile.h.
#include "compiler/service/compile.h"

#include "codegen/jit/compile_program.h"
#include "codegen/jit/nvrtc.h"
#include "codegen/kernelize/kernelize.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/verifier.h"
#include "compiler/interp/interp.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/lower.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/service/compile_cache.h"
#include "compiler/service/service_error.h"
#include "runtime/tuning/tuning.h"

namespace cinch::service {

std::optional<std::vector<std::uint64_t>> evaluate_constant(const ir::Program& program,
                                                            const ir::Function& function) {
  const rt::Result<interp::Array> value = interp::evaluate_constant(program, function);
  if (!value) return std::nullopt;
  return value->bits;
}

namespace {

ir::Program lower_program(FrontEnd& front_end, const ProgramText& text,
                          const std::vector<std::string>& bindings, bool with_passes) {
  const sema::CheckedProgram checked = check_program(front_end, text, bindings);
  ir::Program program = lower::lower(checked, &front_end.sources);
  ir::verify(program, "lower");
  if (with_passes) pipeline::run(program, {.evaluate = evaluate_constant});
  return program;
}

// Kept code with blocks of any size: results are the same, and without NVRTC there will be no
// other.
std::optional<rt::ProgramImage> find_other_blocks(const ProgramRequest& request,
                                                  const ProgramText& text,
                                                  const codegen::Target& target) {
  const bool needs_nvrtc =
      target.kind == codegen::TargetKind::Cuda && target.arch != codegen::kEmulatedArch;
  if (!needs_nvrtc || codegen::nvrtc_report().is_found) return std::nullopt;
  for (const std::uint32_t warps : {8u, 4u, 16u, 2u}) {  // all that CudaOptions takes
    const CompileCache cache(text, request.bindings, request.states, target, warps);
    if (auto kept = cache.find()) return kept;
  }
  return std::nullopt;
}

}  // namespace

ir::Program make_ir(FrontEnd& front_end, const ProgramRequest& request, bool with_passes) {
  return lower_program(front_end, find_program(request), request.bindings, with_passes);
}

kir::KernelProgram make_kernels(const ir::Program& program, codegen::StateUpdate states) {
  kir::KernelProgram kernels = codegen::kernelize(program, states);
  kir::verify(kernels, "kernelize");
  kir::annotate_costs(kernels);
  return kernels;
}

codegen::CudaOptions tuned_cuda_options(const std::string& arch) {
  return {arch, static_cast<std::uint32_t>(rt::gpu_tuning(arch).block_warps)};
}

rt::ProgramImage make_program_image(FrontEnd& front_end, const ProgramRequest& request,
                                    const codegen::Target& target,
                                    std::optional<std::uint32_t> block_warps) {
  const ProgramText text = find_program(request);
  codegen::ImageOptions options;
  options.block_warps = block_warps.value_or(tuned_cuda_options(target.arch).block_warps);
  const CompileCache cache(text, request.bindings, request.states, target, options.block_warps);
  if (auto kept = cache.find()) return std::move(*kept);
  if (!block_warps) {
    if (auto kept = find_other_blocks(request, text, target)) return std::move(*kept);
  }
  const ir::Program program = lower_program(front_end, text, request.bindings, true);
  rt::ProgramImage image =
      value_or_throw(codegen::make_image(make_kernels(program, request.states), target, options));
  // A warning is shown whenever its program is used.
  if (front_end.sink.all().empty()) cache.put(image, front_end.sources);
  return image;
}

}  // namespace cinch::service
