// Kernels are compared as they are printed under one name, without the lines that say where their
// buffers and sizes are in the launch's tables. So the comparison covers everything that the
// emitter printed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "codegen/emit/cuda/kernel/facts.h"
#include "codegen/emit/cuda/kernel/kernel.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::codegen {
namespace {

class KernelWriter : private SourceWriter {
 public:
  KernelWriter(const kir::KernelProgram& program, const std::vector<CudaUnit>& units,
               std::uint32_t block_warps, std::vector<std::string>& symbols)
      : program_(program),
        units_(units),
        block_warps_(block_warps),
        symbols_(symbols),
        warps_(steps_warps(program, block_warps)) {}

  std::string emit() {
    line("// What the running function shares in its block.");
    line("extern __shared__ u64 block_memory[];");
    blank();
    emit_step_functions();
    for (const CudaUnit& unit : units_) {
      const kir::Kernel& kernel = first_of(unit);
      const CudaShape shape = cuda_shape(program_, kernel, block_warps_);
      if (!shape.is_single_block) emit_own(kernel, shape);
    }
    emit_kernel_of(rt::kGpuServeSymbol, fmt::format("{}", rt::kGpuServiceThreads),
                   "serve_buffers_step");
    emit_run_step();
    emit_steps();
    return take();
  }

 private:
  const kir::Kernel& first_of(const CudaUnit& unit) const {
    return program_.kernels[unit.kernels[0]];
  }

  // The beginning of every kernel. `bounds`: threads of a block, and blocks on a multiprocessor.
  void open_kernel(const std::string& symbol, const std::string& bounds) {
    symbols_.push_back(symbol);
    line("extern \"C\" __global__ void __launch_bounds__({})", bounds);
    line("{}(const __grid_constant__ GpuLaunch launch) {{", symbol);
    line("const Place place = find_place(launch);");
    line("GpuTensor& args = launch.tensors[place.tensor];");
    line("u32* const status = status_of(launch, place);");
  }

  // A kernel that runs one step.
  void emit_kernel_of(const std::string& symbol, const std::string& bounds,
                      const std::string& function) {
    open_kernel(symbol, bounds);
    line(
        "if (takes_part(launch.step, args, status)) {}(launch, launch.step, args, "
        "status, place);",
        function);
    line("}");
    blank();
  }

  void emit_own(const kir::Kernel& kernel, const CudaShape& shape) {
    open_kernel(kernel.info.symbol,
                fmt::format("{}, {}", 32 * shape.block_warps, shape.resident_blocks));
    line("if (!takes_part(launch.step, args, status)) return;");
    const bool has_own_body =
        has_whole_rows(program_, kernel) || shape.block_warps != warps_of(kernel);
    if (has_own_body) {
      // A quick compilation shares one function between a kernel and its step.
      const bool may_share = shape.block_warps == warps_of(kernel);
      if (may_share) line("#if !defined(CINCH_QUICK)");
      call_body(kernel, shape.block_warps, "false", "launch.step");
      if (may_share) line("#else");
      if (may_share) call_step(kernel, shape);
      if (may_share) line("#endif");
    } else {
      call_step(kernel, shape);
    }
    line("}");
    blank();
  }

  void call_step(const kir::Kernel& kernel, const CudaShape& shape) {
    line("{}(launch, launch.step, args, status, place);", step_name(kernel, shape.block_warps));
  }

  void call_body(const kir::Kernel& kernel, std::uint32_t warps, const char* is_step,
                 const char* step) {
    const CudaShape shape = cuda_shape(program_, kernel, block_warps_);
    const std::string shared = fmt::format("{}_shared<{}u>", kernel.info.symbol, warps);
    if (shape.shared_bytes > 0) {
      line("static_assert(sizeof({}) <= {}u);", shared, shape.shared_bytes);
    }
    line("{}_body<{}u, {}>(launch, {}, args, status, place, *reinterpret_cast<{}*>(block_memory));",
         kernel.info.symbol, warps, is_step, step, shared);
  }

  // The first warp runs functions of one warp; they share nothing with the other warps.
  std::uint32_t warps_of(const kir::Kernel& kernel) const {
    return kernel.info.is_sequential ? 1 : warps_;
  }

  static std::string step_name(const kir::Kernel& kernel, std::uint32_t warps) {
    return fmt::format("{}_step_{}", kernel.info.symbol, warps);
  }

  // Each step is a function of its own, because compile time grows faster than a function's length.
  // Kernels with loops over whole rows have a body of their own: a call would save registers in
  // memory, and steps of one block do without these loops.
  void open_step(const std::string& name) {
    line(
        "static __device__ __noinline__ void {}(const GpuLaunch& launch, const "
        "GpuStep& step, GpuTensor& args, u32* status, Place place) {{",
        name);
  }

  void emit_step_functions() {
    for (const CudaUnit& unit : units_) {
      const kir::Kernel& kernel = first_of(unit);
      open_step(step_name(kernel, warps_of(kernel)));
      call_body(kernel, warps_of(kernel), "true", "step");
      line("}");
    }
    for (const char* service : {"seal_payload", "commit_states", "open_payload", "serve_buffers"}) {
      open_step(std::string(service) + "_step");
      line("{}(launch, step, args, status, place);", service);
      line("}");
    }
    blank();
  }

  void emit_run_step() {
    line(
        "CINCH_FN void run_step(const GpuLaunch& launch, const GpuStep& step, GpuTensor& "
        "args, u32* status, Place place) {");
    line("switch (step.kernel) {");
    for (const CudaUnit& unit : units_) {
      const kir::Kernel& kernel = first_of(unit);
      line("case {}u: {}return {}(launch, step, args, status, place);",
           fmt::join(unit.kernels, "u: case "),
           warps_of(kernel) < warps_ ? "if (warp_index() != 0u) return; " : "",
           step_name(kernel, warps_of(kernel)));
    }
    line(
        "case u32(GpuService::Seal): return seal_payload_step(launch, step, args, status, place);");
    line(
        "case u32(GpuService::Commit): return commit_states_step(launch, step, args, status, "
        "place);");
    line(
        "case u32(GpuService::Open): return open_payload_step(launch, step, args, status, place);");
    line("default: return serve_buffers_step(launch, step, args, status, place);");
    line("}");
    line("}");
    blank();
  }

  // A step may read what the step before it stored in shared or global memory, since both are of
  // the same block.
  void emit_steps() {
    // NVRTC gives at most 128 registers where it is not told how many blocks there may be. A step
    // whose own kernel gets more would not find room for its values.
    const bool needs_all = std::ranges::any_of(program_.kernels, [&](const kir::Kernel& kernel) {
      const CudaShape shape = cuda_shape(program_, kernel, block_warps_);
      return !shape.is_single_block && shape.resident_blocks == 1;
    });
    open_kernel(rt::kGpuStepsSymbol, fmt::format("{}{}", 32 * warps_, needs_all ? ", 1" : ""));
    line("if (launch.begins_call != 0u) begin_call(launch, status, place);");
    line("#pragma unroll 1");
    line("for (u32 i = 0; i < launch.num_steps; ++i) {");
    line("const GpuStep& step = launch.steps == nullptr ? launch.step : launch.steps[i];");
    line("if (takes_part(step, args, status)) run_step(launch, step, args, status, place);");
    line("__syncthreads();");
    line("}");
    line("}");
  }

  const kir::KernelProgram& program_;
  const std::vector<CudaUnit>& units_;
  const std::uint32_t block_warps_;
  std::vector<std::string>& symbols_;
  const std::uint32_t warps_;
};

// How a kernel is launched, which its text does not say.
auto launch_key(const CudaShape& shape, const kir::Kernel& kernel) {
  return std::tuple(shape.block_warps, shape.team_warps, shape.multiple, shape.is_single_block,
                    shape.shared_bytes, shape.resident_blocks, kernel.info.is_sequential);
}

}  // namespace

std::string emit_kernels(const kir::KernelProgram& program, const std::vector<CudaUnit>& units,
                         std::uint32_t block_warps, std::vector<std::string>& symbols) {
  return KernelWriter(program, units, block_warps, symbols).emit();
}

std::uint32_t steps_warps(const kir::KernelProgram& program, std::uint32_t block_warps) {
  std::uint32_t warps = block_warps;
  for (const kir::Kernel& kernel : program.kernels) {
    if (kernel.info.is_sequential) continue;
    warps = std::min(warps, cuda_shape(program, kernel, block_warps).block_warps);
  }
  return warps;
}

std::uint32_t steps_shared_bytes(const kir::KernelProgram& program, std::uint32_t block_warps) {
  std::uint32_t bytes = 0;
  for (const kir::Kernel& kernel : program.kernels) {
    bytes = std::max(bytes, cuda_shape(program, kernel, block_warps).shared_bytes);
  }
  return bytes;
}

std::vector<CudaUnit> cuda_units(const kir::KernelProgram& program, std::uint32_t block_warps) {
  using Key = std::tuple<decltype(launch_key({}, {})), std::string, std::string, std::string>;
  std::map<Key, std::size_t> known;
  std::vector<CudaUnit> units;
  std::vector<std::vector<CudaPlaces>> places;
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const kir::Kernel& kernel = program.kernels[k];
    CudaFunction made = emit_cuda_kernel(program, kernel, block_warps, "kernel");
    Key key(launch_key(cuda_shape(program, kernel, block_warps), kernel), std::move(made.front),
            std::move(made.back), made.places.kinds());
    const auto [unit, is_new] = known.emplace(std::move(key), units.size());
    if (is_new) {
      units.emplace_back();
      places.emplace_back();
    }
    units[unit->second].kernels.push_back(k);
    places[unit->second].push_back(std::move(made.places));
  }
  for (std::size_t u = 0; u < units.size(); ++u) {
    const kir::Kernel& first = program.kernels[units[u].kernels[0]];
    const CudaFunction made = emit_cuda_kernel(program, first, block_warps, first.info.symbol);
    units[u].text = made.front + CudaPlaces::lines(places[u]) + made.back;
  }
  return units;
}

}  // namespace cinch::codegen
