// The entry of the CUDA emitter: prelude, argument struct, kernels.
#include "codegen/emit/cuda.h"

#include <fmt/format.h>

#include "codegen/emit/c_family.h"
#include "codegen/emit/cuda/shape.h"
#include "codegen/kir/text/text.h"
#include "runtime/core/lang/embed.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::codegen {
namespace {

std::string comment_lines(const std::string& text) {
  std::string out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out += "// " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return out;
}

// What the program's kernels share with the host: the same text for all programs, and the struct of
// a tensor, whose lists have the program's lengths.
std::string shared_with_host(const kir::KernelProgram& program) {
  const rt::GpuTensorLayout at =
      rt::gpu_tensor_layout(program.buffers.size(), program.size_exprs.size(),
                            program.info.params.size(), program.kernels.size());
  std::string text(prelude_text("runtime/image/kernel_abi.h"));
  text += prelude_text("runtime/payload/frame.h");
  return text + fmt::format(
                    "\nnamespace cinch {{\n"
                    "using namespace rt;\n"
                    "struct rt::GpuTensor : GpuTensorOf<{}, {}, {}, {}> {{}};\n"
                    "static_assert(sizeof(GpuTensor) == {});\n"
                    "}}  // namespace cinch\n\n",
                    at.num_buffers, at.num_sizes, at.num_kernels, at.num_params, at.size_bytes);
}

}  // namespace

rt::CudaLaunch cuda_launch(const kir::KernelProgram& program, const kir::Kernel& kernel,
                           const CudaOptions& options) {
  const CudaShape shape = cuda_shape(program, kernel, options.block_warps);
  return {.block_threads = 32 * shape.block_warps,
          .groups_per_block = shape.groups_per_block(),
          .is_single_block = shape.is_single_block,
          .resident_blocks = shape.resident_blocks,
          .waves = shape.waves,
          .shared_bytes = shape.shared_bytes,
          .is_foldable = kernel.is_foldable};
}

rt::CudaLaunch cuda_steps_launch(const kir::KernelProgram& program, const CudaOptions& options) {
  return {.block_threads = 32 * steps_warps(program, options.block_warps),
          .groups_per_block = 1,
          .shared_bytes = steps_shared_bytes(program, options.block_warps)};
}

KernelSource emit_cuda(const kir::KernelProgram& given, const CudaOptions& options) {
  const kir::KernelProgram program = with_call_sizes(given);
  KernelSource source{.target = {TargetKind::Cuda, options.arch},
                      .text = comment_lines(kir::print(program))};
  source.text += lang::source_text();
  source.text += prelude_text("scalar_ops.h");
  source.text += shared_with_host(program);
  for (const char* part : {"warp", "launch", "storage", "pack", "reduce", "scan", "rows", "sort",
                           "draw", "services", "hash", "wire"}) {
    source.text += prelude_text(fmt::format("cuda/{}.h", part));
  }
  source.text += "\nnamespace cinch {\n\n";
  std::vector<const kir::Kernel*> kernels;
  kernels.reserve(program.kernels.size());
  for (const kir::Kernel& kernel : program.kernels) kernels.push_back(&kernel);
  source.text += extern_definitions(program.info, called_externs(kernels));
  const std::vector<CudaUnit> units = cuda_units(program, options.block_warps);
  source.served_by.resize(program.kernels.size());
  for (const CudaUnit& unit : units) {
    source.text += unit.text + "\n";
    for (const std::size_t kernel : unit.kernels) source.served_by[kernel] = unit.kernels[0];
  }
  source.text +=
      emit_services(program) + emit_kernels(program, units, options.block_warps, source.symbols);
  source.text += "}  // namespace cinch\n";
  return source;
}

}  // namespace cinch::codegen
