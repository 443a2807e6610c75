// Resources are read from the compiled code.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/jit/nvrtc.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/work.h"
#include "codegen/tuning/gpu_limits.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/report/explain.h"
#include "compiler/driver/report/text.h"
#include "compiler/service/library_list.h"
#include "runtime/core/ids.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

const char* role_name(rt::BufferRole role) {
  static constexpr const char* kNames[] = {"gradient", "output", "field", "count",    "state",
                                           "state",    "state",  "table", "workspace"};
  return name_in(kNames, role, "workspace");
}

// Words for the operations of reductions.
const std::map<std::string_view, std::string_view> kReductions = {
    {"reduce.add", "sum"},      {"reduce.mul", "product"}, {"reduce.min", "min"},
    {"reduce.max", "max"},      {"reduce.bit_or", "any"},  {"reduce.bit_and", "all"},
    {"scan.add", "running sum"}};

// "reduce.add scale" is "sum scale", "store x" is "compute x".
std::string in_words(const std::string& fused) {
  if (fused == "check finite") return "look for NaN";
  if (fused.starts_with("finish ")) return "finish " + in_words(fused.substr(7));
  if (fused.starts_with("store ")) return "compute " + fused.substr(6);
  const std::string_view all = fused;
  const std::string_view op = all.substr(0, std::min(all.find_first_of(" :"), all.size()));
  const auto known = kReductions.find(op);
  if (known == kReductions.end()) return fused;
  return std::string(known->second).append(all.substr(op.size()));
}

// Where a step is among steps that decide about it.
struct StepPlace {
  bool is_in_branch = false, is_in_loop = false;
};

// In their order.
void place_steps(const std::vector<rt::Step>& steps, StepPlace at,
                 std::vector<std::pair<const rt::Step*, StepPlace>>& placed) {
  for (const rt::Step& step : steps) {
    placed.emplace_back(&step, at);
    StepPlace within = at;
    within.is_in_branch |= step.kind == rt::StepKind::If;
    within.is_in_loop |= step.kind == rt::StepKind::While || step.kind == rt::StepKind::For;
    for (const auto* list : {&step.cond, &step.body, &step.orelse})
      place_steps(*list, within, placed);
  }
}

std::int64_t value_of(kir::KernelProgram& program, HostExprId id, const HostEnv& env) {
  return value_or_throw(program.info.exprs->eval_int(program.info.exprs->upper_bound(id), env));
}

// Null if the text has no such place.
json place_of(const dsl::Span& span, const dsl::SourceSet& sources) {
  const dsl::SourceBuffer* file = span.has_file() ? sources.find(span.file) : nullptr;
  if (file == nullptr) return nullptr;
  const dsl::LineColumn at = file->position(span.begin);
  return fmt::format("{}:{}:{}", file->name(), at.line, at.column);
}

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

std::string EntryKernels::text(HostExprId id) {
  return service::formula_text(program_.info, id);
}

std::int64_t EntryKernels::value(HostExprId id) {
  return value_of(program_, id, env_);
}

json EntryKernels::list() {
  std::vector<std::pair<const rt::Step*, StepPlace>> placed;
  place_steps(program_.entries[static_cast<std::size_t>(kind_)].steps, {}, placed);
  std::map<std::uint32_t, StepPlace> places;  // of first launches
  for (const auto& [step, place] : placed)
    if (step->kind == rt::StepKind::Launch) places.emplace(step->index, place);
  json list = json::array();
  int number = 0;
  for (const std::uint32_t index : kir::entry_structure(program_, kind_).kernels) {
    list.push_back(kernel(program_.kernels[index]));
    json& made = list.back();
    made["number"] = made["role"] == "sweep" ? json(++number) : json();
    made["in_branch"] = places.at(index).is_in_branch;
    made["in_loop"] = places.at(index).is_in_loop;
  }
  return list;
}

json EntryKernels::moves() {
  std::vector<std::pair<const rt::Step*, StepPlace>> placed;
  place_steps(program_.entries[static_cast<std::size_t>(kind_)].steps, {}, placed);
  json list = json::array();
  for (const auto& [step, place] : placed) {
    if (step->kind != rt::StepKind::Zero && !step->has_source()) continue;
    list.push_back(move(*step));
    list.back()["in_branch"] = place.is_in_branch;
    list.back()["in_loop"] = place.is_in_loop;
  }
  return list;
}

// All that the buffers hold.
json EntryKernels::move(const rt::Step& step) {
  const std::int64_t written = value(program_.buffers[step.index].size_bytes);
  json made = {{"does", step.kind == rt::StepKind::Zero   ? "zeros"
                        : step.kind == rt::StepKind::Copy ? "copy"
                                                          : "exchange"},
               {"reads", json::array()},
               {"writes", {stream(step.index, written, written)}},
               {"read_most", 0},
               {"written_most", written}};
  if (!step.has_source()) return made;
  const std::int64_t read = value(program_.buffers[step.index2].size_bytes);
  made["reads"].push_back(stream(step.index2, read, read));
  made["read_most"] = read;
  return made;
}

json EntryKernels::kernel(const kir::Kernel& kernel) {
  const kir::KernelBytes bytes = kir::kernel_bytes(program_, kernel);
  const std::int64_t read = value(bytes.read), written = value(bytes.written);
  const std::int64_t least_read = value(bytes.least_read);
  const std::int64_t least_written = value(bytes.least_written);
  json does = json::array();
  for (const std::string& fused : kernel.info.fused) does.push_back(in_words(fused));
  json made = {{"name", kernel.info.symbol},
               {"role", kernel.info.role == rt::KernelRole::Finish ? "finish" : "sweep"},
               {"fused", kernel.info.fused},
               {"does", does},
               {"bytes_read", text(bytes.read)},
               {"bytes_written", text(bytes.written)},
               {"bytes_read_exact", read == least_read},
               {"bytes_written_exact", written == least_written},
               {"read_most", read},
               {"read_least", least_read},
               {"written_most", written},
               {"written_least", least_written}};
  add_streams(kernel, made);
  const kir::Work work = kir::work_of(kernel, *program_.info.exprs);
  const double share = static_cast<double>(value(kernel.extent)) /
                       static_cast<double>(std::max<std::int64_t>(env_.n, 1));
  made["work_sweeps"] = work.sweeps * share;
  made["work_most"] = work.most;
  return made;
}

json EntryKernels::stream(rt::BufferIndex index, std::int64_t least, std::int64_t most) const {
  const rt::BufferInfo& buffer = program_.buffers[index];
  return {{"buffer", index},
          {"name", buffer.name},
          {"kind", role_name(buffer.role)},
          {"least", least},
          {"most", most}};
}

void EntryKernels::add_streams(const kir::Kernel& kernel, json& to) {
  json reads = json::array(), writes = json::array();
  const auto add = [&](json& list, rt::BufferIndex index, HostExprId least, HostExprId most) {
    if (value(most) > 0) list.push_back(stream(index, value(least), value(most)));
  };
  for (const kir::BufferBytes& each : kir::buffer_bytes(program_, kernel)) {
    add(reads, each.buffer, each.bytes.least_read, each.bytes.read);
    add(writes, each.buffer, each.bytes.least_written, each.bytes.written);
  }
  to["reads"] = std::move(reads);
  to["writes"] = std::move(writes);
}

// Does the kernel sweep the whole tensor, or only a part, such as selected elements?
bool EntryKernels::is_sweep(const kir::Kernel& kernel) {
  return kernel.info.role == rt::KernelRole::Sweep && 2 * value(kernel.extent) > env_.n;
}

std::int64_t EntryKernels::sweeps(bool most) {
  return sweeps(program_.entries[static_cast<std::size_t>(kind_)].steps, most);
}

std::int64_t EntryKernels::sweeps(const std::vector<rt::Step>& steps, bool most) {
  std::int64_t total = 0;
  for (const rt::Step& step : steps) {
    switch (step.kind) {
      case rt::StepKind::Launch:
        total += is_sweep(program_.kernels[step.index]) ? 1 : 0;
        break;
      case rt::StepKind::If: {
        const std::int64_t a = sweeps(step.body, most), b = sweeps(step.orelse, most);
        total += most ? std::max(a, b) : std::min(a, b);
        break;
      }
      case rt::StepKind::While: {
        const std::int64_t times = most ? value(step.expr) : 0;
        total += (times + 1) * sweeps(step.cond, most) + times * sweeps(step.body, most);
        break;
      }
      case rt::StepKind::For: {
        const std::int64_t times = value(step.expr2) - value(step.expr);
        total += std::max<std::int64_t>(times, 0) * sweeps(step.body, most);
        break;
      }
      default:
        break;
    }
  }
  return total;
}

json apart_list(kir::KernelProgram& program, const std::vector<codegen::SweepsApart>& apart,
                const HostEnv& env, const dsl::SourceSet& sources) {
  json list = json::array();
  for (const codegen::SweepsApart& pair : apart) {
    json sizes = json::array();
    for (const codegen::SweepDomain& domain : pair.domains) {
      std::string size = grouped(value_of(program, domain.rows, env));
      if (domain.cols) size += " x " + grouped(value_of(program, domain.cols, env));
      sizes.push_back(size);
    }
    list.push_back({{"first", pair.first},
                    {"second", pair.second},
                    {"why", pair.why},
                    {"sizes", sizes},
                    {"at", place_of(pair.at, sources)}});
  }
  return list;
}

void add_gpu_report(FrontEnd& front_end, const ExplainOptions& options, json& report) {
  const codegen::Target target = gpu_target(options);
  const auto limits = codegen::gpu_limits(target.arch);
  if (target.kind != codegen::TargetKind::Cuda || !limits) {
    throw UsageError("--device cuda explains a target cuda:sm_NN");
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
