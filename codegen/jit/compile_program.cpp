// Connects emitter, compiler and image. See compile_program.h.
#include "codegen/jit/compile_program.h"

#include "codegen/emit/cpu.h"
#include "codegen/emit/cuda/shape.h"
#include "codegen/jit/nvrtc.h"
#include "runtime/module/cpu_module.h"

namespace cinch::codegen {
namespace {

// Units that are compiled at the same time. The number is fixed, not that of cores, so that images
// are the same everywhere.
constexpr std::size_t kMaxParts = 4;

// Clang takes about a tenth of a second of processor time for a text of so many bytes.
constexpr std::size_t kQuickTextBytes = 32768;

rt::Result<rt::ProgramImage> make_cpu_image(const kir::KernelProgram& program,
                                            const std::string& arch, const ImageOptions& options) {
  if (!has_images(arch)) {
    return rt::fail(rt::ErrorKind::Unavailable,
                    "no images are made for " + arch + ": cinch build compiles libraries for it");
  }
  CpuCompileOptions compile_options{.effort = options.effort, .times = options.times};
  CpuOptions emit_options{.arch = arch,
                          .count_accesses = options.count_accesses,
                          .links_helpers = can_link_helpers(compile_options),
                          .max_parts = kMaxParts,
                          .effort = compile_options.effort};
  auto binary = TRY(compile_cpu(emit_cpu_parts(program, emit_options), compile_options));
  rt::ProgramImage image = image_without_code(program, "cpu:" + arch);
  image.binary = std::move(binary);
  image.counts_accesses = options.count_accesses;
  return image;
}

rt::Result<rt::ProgramImage> make_cuda_image(const kir::KernelProgram& given,
                                             const std::string& arch, const ImageOptions& options) {
  if (options.count_accesses) {
    return rt::fail(rt::ErrorKind::Unavailable, "accesses are counted on CPUs only");
  }
  const kir::KernelProgram program = with_call_sizes(given);
  const CudaOptions emit_options{arch, options.block_warps};
  const KernelSource source = emit_cuda(program, emit_options);
  auto binary = TRY(arch == kEmulatedArch  ? compile_emulated(source)
                    : options.compile_cuda ? options.compile_cuda(source, options.is_ptx)
                                           : nvrtc_binary(source, options.is_ptx, options.effort));
  rt::ProgramImage image = image_without_code(program, "cuda:" + arch);
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    image.kernels[k].cuda = cuda_launch(program, program.kernels[k], emit_options);
    image.kernels[k].symbol = program.kernels[source.served_by[k]].info.symbol;
  }
  const rt::CudaLaunch steps = cuda_steps_launch(program, emit_options);
  image.gpu_steps_threads = steps.block_threads;
  image.gpu_steps_shared_bytes = steps.shared_bytes;
  image.binary = std::move(binary);
  return image;
}

}  // namespace

rt::Result<std::vector<std::uint8_t>> nvrtc_binary(const KernelSource& source, bool is_ptx,
                                                   Effort effort) {
  auto binary = TRY(is_ptx ? compile_cuda(source, {.output = CudaOutput::Ptx, .effort = effort})
                           : compile_cuda_to_load(source, effort));
  return std::move(binary.bytes);
}

bool is_quick_worth_it(const kir::KernelProgram& program, const Target& target) {
  if (target.kind == TargetKind::Cuda) return true;
  std::size_t text_bytes = 0;
  CpuOptions options{target.arch};
  options.links_helpers = true;
  for (const KernelSource& source : emit_cpu_parts(program, options))
    text_bytes += source.text.size();

  return text_bytes > kQuickTextBytes;
}

rt::ProgramImage image_without_code(const kir::KernelProgram& program, std::string target) {
  rt::ProgramImage image{.info = program.info,
                         .target = std::move(target),
                         .fingerprint = rt::fingerprint(program.info),
                         .buffers = program.buffers,
                         .size_exprs = program.size_exprs};
  image.kernels.reserve(program.kernels.size());
  for (const kir::Kernel& kernel : program.kernels) image.kernels.push_back(kernel.info);
  image.messages = program.messages;
  image.constants = program.constants;
  image.entries = program.entries;
  return image;
}

rt::Result<rt::ProgramImage> make_image(const kir::KernelProgram& program, const Target& target,
                                        const ImageOptions& options) {
  if (target.kind == TargetKind::Cuda) return make_cuda_image(program, target.arch, options);
  const std::string arch = target.arch == "native" ? std::string(rt::host_cpu_arch()) : target.arch;
  return make_cpu_image(program, arch, options);
}

}  // namespace cinch::codegen
