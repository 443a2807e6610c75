// Joins emitter, compiler and image. See compile_program.h.
#include "codegen/jit/compile_program.h"

#include "codegen/emit/cpu.h"
#include "codegen/jit/clang_jit.h"
#include "runtime/image/fingerprint.h"
#include "runtime/module/cpu_module.h"

namespace cinch::codegen {
namespace {

// Units that are compiled at the same time. Not the number of cores: images are the same
// everywhere.
constexpr std::size_t kMaxParts = 2;

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
  CpuCompileOptions compile_options;
  compile_options.times = options.times;
  CpuOptions emit_options{arch, options.count_accesses};
  emit_options.links_helpers = can_link_helpers(compile_options);
  emit_options.max_parts = kMaxParts;
  auto binary = compile_cpu(emit_cpu_parts(program, emit_options), compile_options);
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
