// cinch build: makes a library, or prints a stage with --emit.

#include "codegen/emit/cpu.h"
#include "codegen/emit/cuda.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/jit/nvrtc.h"
#include "codegen/kir/text/text.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/target.h"
#include "compiler/ir/text/text.h"
#include "dsl/syntax/syntax.h"
#include "runtime/image/image_file.h"

namespace cinch::driver {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string emit_tree(const ProgramOptions& options) {
  FrontEnd front_end;
  const dsl::SourceBuffer& file = front_end.add(service::find_program(options));
  const ast::Module module = dsl::parse(file, front_end.sink);
  front_end.end_if_errors();
  return dsl::dump(module);
}

std::string emit_checked(const ProgramOptions& options) {
  FrontEnd front_end;
  return sema::dump(
      service::check_program(front_end, service::find_program(options), options.bindings));
}

kir::KernelProgram make_kernels(const ProgramOptions& options) {
  FrontEnd front_end;
  rt::StepLimit steps = service::step_limit(options);
  const ir::Program program = service::make_ir(front_end, options, true, &steps);
  return service::make_kernels(program, {options.states, &steps});
}

codegen::Target target_of(const BuildOptions& options) {
  if (options.targets.size() > 1) {
    throw UsageError("--emit prints one target at a time");
  }
  return parse_target(options.targets.empty() ? "cpu:" + options.execution.cpu
                                              : options.targets[0]);
}

codegen::KernelSource make_source(const BuildOptions& options, const codegen::Target& target) {
  const kir::KernelProgram kernels = make_kernels(options.program);
  if (target.kind == codegen::TargetKind::Cuda) {
    return codegen::emit_cuda(kernels, service::tuned_cuda_options(target.arch));
  }
  return codegen::emit_cpu(kernels, {target.arch});
}

Bytes emit_image(const BuildOptions& options) {
  FrontEnd front_end;
  const codegen::Target target =
      options.targets.empty() ? find_target(options.execution, true) : target_of(options);
  ProgramOptions program = options.program;
  program.is_ahead_of_time = true;
  return rt::write_image(service::make_program_image(front_end, program, target));
}

// Formatted by Clang's format library if that is available, else as emitted.
std::string emit_source(const BuildOptions& options) {
  const codegen::KernelSource source = make_source(options, target_of(options));
  const rt::Result<std::string> formatted = codegen::format_source(source.text);
  return formatted ? *formatted : source.text;
}

std::string emit_assembly(const BuildOptions& options) {
  const codegen::Target target = target_of(options);
  if (target.kind == codegen::TargetKind::Cuda) {
    throw UsageError("--emit=asm is for CPUs; for CUDA there is --emit=ptx");
  }
  return value_or_throw(codegen::compile_cpu_to_assembly(make_source(options, target)));
}

Bytes emit_object(const BuildOptions& options) {
  const codegen::Target target = target_of(options);
  if (target.kind == codegen::TargetKind::Cuda) {
    throw UsageError("--emit=object is for CPUs; for CUDA there is --emit=cubin");
  }
  return value_or_throw(codegen::compile_cpu_to_object(make_source(options, target)));
}

codegen::Target cuda_target_of(const BuildOptions& options) {
  const codegen::Target target =
      options.targets.empty() ? parse_target("cuda") : target_of(options);
  if (target.kind == codegen::TargetKind::Cuda) return target;
  throw UsageError("--emit=cu, ptx and cubin need --target cuda:sm_NN");
}

Bytes emit_cuda_binary(const BuildOptions& options, codegen::CudaOutput output) {
  const codegen::Target target = cuda_target_of(options);
  codegen::CudaCompileOptions compile;
  compile.output = output;
  Bytes bytes = value_or_throw(codegen::compile_cuda(make_source(options, target), compile)).bytes;
  if (output == codegen::CudaOutput::Ptx && !bytes.empty() && bytes.back() == 0) bytes.pop_back();
  return bytes;
}

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

Bytes emit_stage(const BuildOptions& options) {
  const Progress progress("compiling " + options.program.program);
  const std::string& stage = options.emit;
  if (stage == "ast") return bytes_of(emit_tree(options.program));
  if (stage == "checked") return bytes_of(emit_checked(options.program));
  if (stage == "ir") {
    FrontEnd front_end;
    return bytes_of(ir::print(service::make_ir(front_end, options.program, !options.no_passes)));
  }
  if (stage == "kir") return bytes_of(kir::print(make_kernels(options.program)));
  if (stage == "source") return bytes_of(emit_source(options));
  // The exact text that the compiler gets.
  if (stage == "cu") return bytes_of(make_source(options, cuda_target_of(options)).text);
  if (stage == "asm") return bytes_of(emit_assembly(options));
  if (stage == "object") return emit_object(options);
  if (stage == "ptx") return emit_cuda_binary(options, codegen::CudaOutput::Ptx);
  if (stage == "cubin") return emit_cuda_binary(options, codegen::CudaOutput::Cubin);
  return emit_image(options);
}

}  // namespace

ExitCode run_build(const BuildOptions& options) {
  if (options.emit.empty()) {
    return build_library(options);
  }
  if (!options.more_files.empty()) {
    throw UsageError("--emit takes one program");
  }
  const bool is_binary =
      options.emit == "object" || options.emit == "cubin" || options.emit == "image";
  if (is_binary && options.output.empty()) {
    throw UsageError("--emit=" + options.emit + " needs --output FILE");
  }
  const Bytes bytes = emit_stage(options);
  if (options.output.empty()) {
    fmt::print("{}", std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } else {
    write_file(options.output, bytes);
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
