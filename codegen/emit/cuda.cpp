// The door of the CUDA emitter: prelude, argument struct, kernels.
#include "codegen/emit/cuda.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda_kernel.h"
#include "codegen/emit/prelude_text.h"
#include "codegen/kir/text.h"
#include "runtime/core/check.h"
#include "runtime/core/lang/embed.h"

namespace cinch::codegen {
namespace {

// What CUDA lets a kernel take.
constexpr std::size_t kMaxArgsBytes = 32764;

// An array of nothing is no array.
std::size_t at_least_one(std::size_t n) {
  return std::max<std::size_t>(n, 1);
}

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

std::string args_struct(const kir::KernelProgram& program) {
  return fmt::format(
      "\nnamespace cinch {{\n"
      "// The one parameter of every kernel, laid out as cuda_args_layout says.\n"
      "struct CinchArgs {{\n"
      "  void* buffers[{}];\n"
      "  u64 sizes[{}];\n"
      "  u64 params[{}];\n"
      "  u32 draw[8];\n"
      "  u32* status;\n"
      "  u64 num_groups;\n"
      "}};\n\n",
      at_least_one(program.buffers.size()), at_least_one(program.size_exprs.size()),
      at_least_one(program.info.params.size()));
}

}  // namespace

CudaArgsLayout cuda_args_layout(const kir::KernelProgram& program) {
  CudaArgsLayout layout;
  layout.sizes = 8 * at_least_one(program.buffers.size());
  layout.params = layout.sizes + 8 * at_least_one(program.size_exprs.size());
  layout.draw = layout.params + 8 * at_least_one(program.info.params.size());
  layout.status = layout.draw + 32;
  layout.num_groups = layout.status + 8;
  layout.size_bytes = layout.num_groups + 8;
  return layout;
}

rt::CudaLaunch cuda_launch(const kir::KernelProgram& program, const kir::Kernel& kernel) {
  const CudaShape shape = cuda_shape(program, kernel);
  return {32 * shape.block_warps, shape.groups_per_block(), shape.is_single_block};
}

KernelSource emit_cuda(const kir::KernelProgram& program, const CudaOptions& options) {
  if (cuda_args_layout(program).size_bytes > kMaxArgsBytes) {
    CINCH_LIMITATION("the program's buffers and sizes do not fit a kernel's parameters");
  }
  KernelSource source;
  source.target = {TargetKind::Cuda, options.arch};
  source.text = comment_lines(kir::print(program));
  source.text += lang::source_text();
  source.text += prelude_text("scalar_ops.h");
  for (const char* part : {"warp", "storage", "reduce", "scan", "sort", "draw"}) {
    source.text += prelude_text(fmt::format("cuda/{}.h", part));
  }
  source.text += args_struct(program);
  for (const kir::Kernel& kernel : program.kernels) {
    source.text += CudaKernelEmitter(program, kernel).emit() + "\n";
    source.symbols.push_back(kernel.info.symbol);
  }
  source.text += "}  // namespace cinch\n";
  return source;
}

}  // namespace cinch::codegen
