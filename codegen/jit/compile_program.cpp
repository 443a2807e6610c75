// Joins emitter, compiler and image. See compile_program.h.
#include "codegen/jit/compile_program.h"

#include "codegen/emit/cpu.h"
#include "codegen/jit/clang_jit.h"
#include "runtime/image/fingerprint.h"
#include "runtime/module/cpu_module.h"

namespace cinch::codegen {
namespace {

std::vector<rt::KernelInfo> kernel_infos(const kir::KernelProgram& program) {
  std::vector<rt::KernelInfo> infos;
  infos.reserve(program.kernels.size());
  for (const kir::Kernel& kernel : program.kernels) infos.push_back(kernel.info);
  return infos;
}

}  // namespace

rt::Result<rt::ProgramImage> make_image(const kir::KernelProgram& program, const Target& target,
                                        const ImageOptions& options) {
  if (target.kind != TargetKind::Cpu) {
    return rt::fail(rt::ErrorKind::Unavailable, "images are made for CPU targets only");
  }
  if (!has_images(target.arch)) {
    return rt::fail(rt::ErrorKind::Unavailable,
                    "no images are made for " + target.arch + ": its code is built, not run");
  }
  const std::string arch = target.arch == "native" ? std::string(rt::host_cpu_arch()) : target.arch;
  const KernelSource source = emit_cpu(program, {arch, options.count_accesses});
  CpuCompileOptions compile_options;
  compile_options.times = options.times;
  auto binary = compile_cpu(source, compile_options);
  if (!binary) return tl::unexpected(binary.error());

  rt::ProgramImage image;
  image.info = program.info;
  image.target = "cpu:" + arch;
  image.fingerprint = rt::fingerprint(program.info);
  image.buffers = program.buffers;
  image.size_exprs = program.size_exprs;
  image.kernels = kernel_infos(program);
  image.messages = program.messages;
  image.constants = program.constants;
  image.entries = program.entries;
  image.binary = std::move(*binary);
  image.counts_accesses = options.count_accesses;
  return image;
}

}  // namespace cinch::codegen
