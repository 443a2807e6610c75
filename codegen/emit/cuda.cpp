// The door of the CUDA emitter: prelude, argument struct, kernels.
#include "codegen/emit/cuda.h"

#include <fmt/format.h>

#include <cstddef>

#include "codegen/emit/cuda/shape.h"
#include "codegen/emit/cuda/steps.h"
#include "codegen/emit/cuda/units.h"
#include "codegen/emit/cuda/wire.h"
#include "codegen/emit/extern_text.h"
#include "codegen/emit/prelude_text.h"
#include "codegen/kir/text/text.h"
#include "runtime/core/lang/embed.h"
#include "runtime/image/gpu_abi.h"
#include "runtime/payload/payload.h"

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

// The numbers of runtime/image/gpu_abi.h.
void launch_constants(std::string& text) {
  const auto constant = [&](const char* name, std::uint32_t value) {
    text += fmt::format("constexpr u32 {} = {}u;\n", name, value);
  };
  constant("kRoundCondition", rt::kRoundCondition);
  constant("kStatusWords", rt::kStatusWords);
  constant("kStepFolds", static_cast<std::uint32_t>(rt::GpuFold::Folds));
  constant("kStepIsFolded", static_cast<std::uint32_t>(rt::GpuFold::IsFolded));
  constant("kPayloadVersion", rt::kPayloadFormatVersion);
  constant("kPayloadFaultBit", rt::kPayloadFaultBit);
  constant("kConditionBit", rt::kConditionBit);
  const auto service = [&](const char* name, rt::GpuService value) {
    constant(name, rt::kGpuServiceBase + static_cast<std::uint32_t>(value));
  };
  service("kServiceZero", rt::GpuService::Zero);
  service("kServiceCopy", rt::GpuService::Copy);
  service("kServiceSetRound", rt::GpuService::SetRound);
  service("kServiceCheck", rt::GpuService::Check);
  service("kServiceWiden", rt::GpuService::Widen);
  service("kServiceNarrow", rt::GpuService::Narrow);
  service("kServiceFindNonFinite", rt::GpuService::FindNonFinite);
  service("kServiceFill", rt::GpuService::Fill);
  service("kServiceAddTo", rt::GpuService::AddTo);
  service("kServiceDivide", rt::GpuService::Divide);
  service("kServiceMultiply", rt::GpuService::Multiply);
  service("kServiceSeal", rt::GpuService::Seal);
  service("kServiceCommit", rt::GpuService::Commit);
  service("kServiceOpen", rt::GpuService::Open);
  const auto fault = [&](const char* name, rt::PayloadFault value) {
    constant(name, static_cast<std::uint32_t>(value));
  };
  fault("kFaultMagic", rt::PayloadFault::Magic);
  fault("kFaultVersion", rt::PayloadFault::Version);
  fault("kFaultFlags", rt::PayloadFault::Flags);
  fault("kFaultLength", rt::PayloadFault::Length);
  fault("kFaultFingerprint", rt::PayloadFault::Fingerprint);
  fault("kFaultShape", rt::PayloadFault::Shape);
  fault("kFaultDecodeHash", rt::PayloadFault::DecodeHash);
  fault("kFaultCount", rt::PayloadFault::Count);
  fault("kFaultCheckWord", rt::PayloadFault::CheckWord);
  fault("kFaultPadding", rt::PayloadFault::Padding);
  fault("kFaultLastBits", rt::PayloadFault::LastBits);
  fault("kFaultIndexLimit", rt::PayloadFault::IndexLimit);
  fault("kFaultIndexOrder", rt::PayloadFault::IndexOrder);
}

// The structs of runtime/image/gpu_abi.h, with their offsets asserted by sizes: NVRTC 13.0 and
// older have no offsetof.
std::string launch_structs(const kir::KernelProgram& program) {
  const rt::GpuTensorLayout at =
      rt::gpu_tensor_layout(program.buffers.size(), program.size_exprs.size(),
                            program.info.params.size(), program.kernels.size());
  std::string text = fmt::format(
      "\nnamespace cinch {{\n"
      "struct CinchTensorSizes {{\n"
      "  void* buffers[{0}];\n"
      "  u64 bytes[{0}];\n"
      "  u64 sizes[{1}];\n"
      "  u64 groups[{2}];\n"
      "  u64 params[{3}];\n"
      "}};\n"
      "static_assert(sizeof(CinchTensorSizes) == {5});\n"
      "struct CinchTensor : CinchTensorSizes {{\n"
      "  u64 header[5];\n"
      "  void* payload;\n"
      "  u64 payload_bytes;\n"
      "  void* tensor;\n"
      "  u32 draw[8];\n"
      "}};\n"
      "static_assert(sizeof(CinchTensor) == {4});\n",
      at.num_buffers, at.num_sizes, at.num_kernels, at.num_params, at.size_bytes, at.header);
  text += fmt::format(
      "struct CinchCondition {{\n"
      "  u32 buffer, wanted, end, begin;\n"
      "}};\n"
      "struct CinchOutcome {{\n"
      "  u64 payload_bytes;\n"
      "  u32 flags, failed;\n"
      "}};\n"
      "struct CinchStep {{\n"
      "  i64 value;\n"
      "  u32 kernel, arg0, arg1, is_guarded, num_conditions;\n"
      "  CinchCondition conditions[{}];\n"
      "}};\n"
      "static_assert(sizeof(CinchStep) == {});\n"
      "struct CinchLaunch {{\n"
      "  CinchTensor* tensors;\n"
      "  u32* swapped;\n"
      "  u32* status;\n"
      "  CinchOutcome* outcomes;\n"
      "  const u32* first_block;\n"
      "  u32* counts;\n"
      "  const CinchStep* steps;\n"
      "  u32 num_tensors, num_states, num_counts, num_steps, has_block_per_tensor, begins_call;\n"
      "  CinchStep step;\n"
      "}};\n"
      "static_assert(sizeof(CinchLaunch) == {});\n"
      "static_assert(sizeof(CinchLaunch) - sizeof(CinchStep) == {});\n",
      rt::kMaxGpuConditions, sizeof(rt::GpuStep), sizeof(rt::GpuLaunch),
      offsetof(rt::GpuLaunch, step));
  launch_constants(text);
  return text + "}  // namespace cinch\n\n";
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
  KernelSource source;
  source.target = {TargetKind::Cuda, options.arch};
  source.text = comment_lines(kir::print(program));
  source.text += lang::source_text();
  source.text += prelude_text("scalar_ops.h");
  source.text += launch_structs(program);
  for (const char* part : {"warp", "launch", "storage", "reduce", "scan", "rows", "sort", "draw",
                           "services", "hash", "wire"}) {
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
