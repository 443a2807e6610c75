// Resources are read from the compiled code.
#include "compiler/driver/report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/jit/nvrtc.h"
#include "codegen/tuning/gpu_limits.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "runtime/gpu/device.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

codegen::Target gpu_target(const ExplainOptions& options) {
  if (!options.target.empty()) return parse_target(options.target);
  if (const auto driver = rt::open_cuda_driver()) {
    if (const auto device = rt::GpuDevice::open(**driver)) {
      return {codegen::TargetKind::Cuda, (*device)->arch()};
    }
  }
  return {codegen::TargetKind::Cuda, "sm_90"};
}

json kernel_report(const codegen::KernelResources& kernel, std::uint32_t block_threads,
                   std::uint32_t dynamic_bytes, const codegen::GpuLimits& limits) {
  const std::uint32_t shared_bytes = kernel.shared_bytes + dynamic_bytes;
  const codegen::Occupancy fits =
      codegen::occupancy(limits, {block_threads, kernel.registers, shared_bytes});
  return {{"name", kernel.symbol},
          {"threads", block_threads},
          {"registers", kernel.registers},
          {"shared_bytes", shared_bytes},
          {"stack_bytes", kernel.stack_bytes},
          {"blocks", fits.blocks},
          {"occupancy", fits.share}};
}

}  // namespace

void add_gpu_report(FrontEnd& front_end, const ExplainOptions& options, json& report) {
  const codegen::Target target = gpu_target(options);
  const auto limits = codegen::gpu_limits(target.arch);
  if (target.kind != codegen::TargetKind::Cuda || !limits) {
    throw CommandError(ExitCode::Usage, "--device cuda explains a target cuda:sm_NN");
  }
  ProgramOptions program = options.program;
  program.is_ahead_of_time = true;  // code that is compiled quickly takes more registers and stack
  const rt::ProgramImage image = compile_program(front_end, program, target);
  const auto known = codegen::nvrtc_report().archs;
  if (const auto other = codegen::ptx_arch_for(target.arch, known); !other.empty()) {
    throw CommandError(ExitCode::Unavailable,
                       target.arch +
                           " is newer than this NVRTC: the driver compiles its kernels "
                           "from PTX; explain --target cuda:" +
                           other);
  }
  const auto resources = value_or_throw(codegen::cubin_resources(image.binary));
  report["arch"] = target.arch;
  report["gpu_kernels"] = json::array();
  std::set<std::string_view> shown;  // kernels that do the same share one function
  const auto add = [&](std::string_view symbol, std::uint32_t threads, std::uint32_t shared_bytes) {
    const auto found = std::ranges::find(resources, symbol, &codegen::KernelResources::symbol);
    if (found == resources.end() || !shown.insert(symbol).second) return;
    report["gpu_kernels"].push_back(kernel_report(*found, threads, shared_bytes, *limits));
  };
  // Kernels of a single block are steps of the last function.
  for (const rt::KernelInfo& info : image.kernels) {
    add(info.symbol, info.cuda.block_threads, info.cuda.shared_bytes);
  }
  add(rt::kGpuServeSymbol, rt::kGpuServiceThreads, 0);
  add(rt::kGpuStepsSymbol, image.gpu_steps_threads, image.gpu_steps_shared_bytes);
}

std::string gpu_report_text(const json& report, std::size_t width) {
  TextTable table({{"", "kernel", true},
                   {"threads", "a block"},
                   {"registers", "a thread"},
                   {"stack B", "a thread"},
                   {"shared B", "a block"},
                   {"", "blocks"},
                   {"warps", "%"}},
                  2);
  for (const json& kernel : report["gpu_kernels"]) {
    const auto number = [&](const char* key) {
      return std::to_string(kernel[key].get<std::uint32_t>());
    };
    table.add({kernel["name"].get<std::string>(), number("threads"), number("registers"),
               number("stack_bytes"), number("shared_bytes"), number("blocks"),
               fmt::format("{:.0f}", 100 * kernel["occupancy"].get<double>())});
  }
  const std::string head = fmt::format(
      "on {}: what kernels take, how many blocks a multiprocessor holds, and how many of "
      "its warps these fill",
      report["arch"].get<std::string>());
  return "\n" + wrapped(head, 0, width) + "\n" + table.text(width);
}

}  // namespace cinch::driver
