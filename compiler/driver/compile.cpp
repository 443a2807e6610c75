// From text to image; see compile.h.
#include "compiler/driver/compile.h"

#include <filesystem>

#include "codegen/jit/compile_program.h"
#include "codegen/kernelize/kernelize.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/verifier.h"
#include "compiler/driver/compile_cache.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/interrupt.h"
#include "compiler/driver/output_file.h"
#include "compiler/driver/terminal.h"
#include "compiler/interp/interp.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/lower.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/image/image_file.h"
#include "runtime/module/cpu_module.h"

namespace cinch::driver {

std::optional<std::vector<std::uint64_t>> evaluate_constant(const ir::Program& program,
                                                            const ir::Function& function) {
  const rt::Result<interp::Array> value = interp::evaluate_constant(program, function);
  if (!value) return std::nullopt;
  return value->bits;
}

ir::Program lower_program(FrontEnd& front_end, const ProgramOptions& options, bool with_passes) {
  const sema::CheckedProgram checked = check_program(front_end, options);
  ir::Program program = lower::lower(checked, &front_end.sources);
  ir::verify(program, "lower");
  if (with_passes) pipeline::run(program, {.evaluate = evaluate_constant});
  return program;
}

ir::Program make_ir(const ProgramOptions& options, bool with_passes) {
  FrontEnd front_end;
  return lower_program(front_end, options, with_passes);
}

kir::KernelProgram make_kernels(const ir::Program& program) {
  kir::KernelProgram kernels = codegen::kernelize(program);
  kir::verify(kernels, "kernelize");
  kir::annotate_costs(kernels);
  return kernels;
}

codegen::Target find_target(const ExecutionOptions& options, bool must_run) {
  if (options.device != "cpu") {
    throw CommandError(ExitCode::Unavailable,
                       "device '" + options.device +
                           "' is not in this version: it runs code on the CPU only "
                           "(build --emit=source --target sm_80 prints CUDA)");
  }
  const std::string arch = options.cpu == "native" ? std::string(rt::host_cpu_arch()) : options.cpu;
  if (must_run && !rt::host_supports(arch)) {
    throw CommandError(ExitCode::Unavailable, "this machine cannot run code for " + arch +
                                                  "; the highest it runs is " +
                                                  std::string(rt::host_cpu_arch()));
  }
  return {codegen::TargetKind::Cpu, arch};
}

codegen::Target parse_target(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string arch = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool is_cuda = kind == "cuda" || kind.starts_with("sm_");
  const bool is_cpu = kind == "cpu" || kind == "native" || kind.starts_with("x86-64");
  if (!is_cuda && !is_cpu) {
    throw CommandError(ExitCode::Usage,
                       "--target takes cpu, cpu:x86-64-v3 or cuda:sm_90, not '" + text + "'");
  }
  if (is_cuda) {
    return {codegen::TargetKind::Cuda, !arch.empty() ? arch : kind == "cuda" ? "sm_80" : kind};
  }
  const std::string cpu = !arch.empty() ? arch : kind == "cpu" ? "native" : kind;
  return {codegen::TargetKind::Cpu, cpu == "native" ? std::string(rt::host_cpu_arch()) : cpu};
}

rt::ProgramImage make_program_image(const ProgramOptions& options,
                                    const ExecutionOptions& execution) {
  return make_program_image(options, find_target(execution, true));
}

std::optional<rt::ProgramImage> find_image(const ProgramOptions& options,
                                           const ExecutionOptions& execution) {
  std::error_code not_there;
  const bool is_file = std::filesystem::is_regular_file(options.program, not_there);
  if (!is_file || !is_image(read_text_file(options.program))) return std::nullopt;
  rt::ProgramImage image = value_or_throw(rt::load_image(options.program), options.program);
  const std::string wanted = "cpu:" + find_target(execution, true).arch;
  if (execution.cpu != "native" && image.target != wanted) {
    throw CommandError(ExitCode::Usage, "--cpu " + execution.cpu + ": " + options.program +
                                            " was compiled for " + image.target);
  }
  return image;
}

rt::ProgramImage make_program_image(const ProgramOptions& options, const codegen::Target& target) {
  const CompileCache cache(find_program(options.program), options.bindings, target);
  if (auto kept = cache.find()) return std::move(*kept);
  FrontEnd front_end;
  const ir::Program program = lower_program(front_end, options, true);
  rt::ProgramImage image = value_or_throw(codegen::make_image(make_kernels(program), target));
  // A warning is shown whenever its program is used.
  if (front_end.sink.all().empty()) cache.put(image, front_end.sources);
  return image;
}

}  // namespace cinch::driver
