#include "tests/unit/codegen/emit/program_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/emit/cpu.h"
#include "codegen/emit/cuda.h"
#include "codegen/emit/cuda/shape.h"
#include "codegen/emulator/gpu.h"
#include "codegen/jit/clang_jit.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/gpu_abi.h"
#include "runtime/module/cpu_module.h"

namespace cinch::codegen {
namespace {

constexpr std::uint8_t kCanary = 0xa5;
constexpr std::size_t kCanaryBytes = 64;

HostEnv env_of(const BitsCase& at, std::int64_t step) {
  HostEnv env{.n = at.n, .rows = at.rows, .cols = at.cols};
  env.world = at.world;
  env.worker = kBitsDraw[6];
  env.step = step;
  env.params = at.host_params;
  return env;
}

// Contents of a buffer before the first entry runs. Packed runs end in zero bits, as payload and
// state do.
std::vector<std::uint8_t> contents(const kir::KernelProgram& program, const rt::BufferInfo& info,
                                   const BitsCase& at) {
  const HostEnv env = env_of(at, at.step);
  const HostExprId formula = program.info.exprs->has_count(info.size_bytes)
                                 ? HostExprPool(*program.info.exprs).upper_bound(info.size_bytes)
                                 : info.size_bytes;
  std::vector<std::uint8_t> bytes(
      static_cast<std::size_t>(program.info.exprs->eval_int(formula, env).value()));
  if (info.role == rt::BufferRole::Constant) {
    std::memcpy(bytes.data(), program.constants[info.role_index].data(), bytes.size());
    return bytes;
  }
  const bool is_truth = is_bool(info.dtype) && info.storage_bits == 8;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = at.input[i % at.input.size()] & (is_truth ? 1 : 0xff);
  }
  const std::size_t bits = static_cast<std::size_t>(at.n) * info.storage_bits;
  if (info.storage_bits % 8 && bits % 8 && bytes.size() == (bits + 7) / 8) {
    bytes.back() &= static_cast<std::uint8_t>((1u << bits % 8) - 1);
  }
  return bytes;
}

// What an entry's kernels must write before they read it.
bool is_unwritten(const rt::BufferInfo& info, rt::EntryKind entry) {
  switch (info.role) {
    case rt::BufferRole::Workspace:
    case rt::BufferRole::StateNext:
      return true;
    case rt::BufferRole::Output:
      return entry == rt::EntryKind::Decode;
    case rt::BufferRole::Field:
    case rt::BufferRole::Count:
      return entry == rt::EntryKind::Encode;
    default:
      return false;
  }
}

// Buffers of one run by CPU kernels; each has bytes behind it that nobody may touch.
class HostMemory {
 public:
  HostMemory(const kir::KernelProgram& program, const BitsCase& at) {
    for (const rt::BufferInfo& info : program.buffers) {
      std::vector<std::uint8_t> bytes = contents(program, info, at);
      sizes_.push_back(bytes.size());
      bytes.resize(bytes.size() + kCanaryBytes, kCanary);
      buffers_.push_back(std::move(bytes));
    }
    for (auto& buffer : buffers_) pointers_.push_back(buffer.data());
  }

  void zero(std::uint32_t index) { std::memset(pointers_[index], 0, sizes_[index]); }
  void copy(std::uint32_t to, std::uint32_t from) {
    std::memcpy(pointers_[to], pointers_[from], std::min(sizes_[to], sizes_[from]));
  }
  void write(std::uint32_t index, const void* from, std::size_t size) {
    std::memcpy(pointers_[index], from, size);
  }
  void* const* pointers() const { return pointers_.data(); }
  std::size_t num_buffers() const { return buffers_.size(); }
  std::span<const std::uint8_t> bytes(std::size_t i) const {
    return std::span(buffers_[i]).first(sizes_[i]);
  }
  bool is_overrun(std::size_t i) const {
    const auto behind = std::span(buffers_[i]).subspan(sizes_[i]);
    return !std::all_of(behind.begin(), behind.end(), [](auto byte) { return byte == kCanary; });
  }
  std::uint32_t status[rt::kStatusWords] = {};

 private:
  std::vector<std::vector<std::uint8_t>> buffers_;
  std::vector<std::size_t> sizes_;
  std::vector<void*> pointers_;
};

// The same on an emulated device, which watches their ends itself.
class DeviceMemory {
 public:
  DeviceMemory(const kir::KernelProgram& program, const BitsCase& at)
      : gpu_({.schedule_seed = static_cast<std::uint64_t>(at.n) * 7 + at.input.front(),
              .memory_bytes = std::size_t{1} << 28}) {
    for (const rt::BufferInfo& info : program.buffers) add(contents(program, info, at));
    add(std::vector<std::uint8_t>(sizeof(std::uint32_t) * rt::kStatusWords));
    status_ = static_cast<std::uint32_t*>(pointers_.back());
    pointers_.pop_back();
  }

  // Bytes that the entry must write stay as they are, and may not be read before.
  void begin(const kir::KernelProgram& program, rt::EntryKind entry) {
    for (std::size_t i = 0; i < pointers_.size(); ++i) {
      if (is_unwritten(program.buffers[i], entry)) {
        (void)gpu_.mark_uninitialised(pointers_[i], sizes_[i]);
      }
    }
  }
  void zero(std::uint32_t index) { (void)gpu_.fill(pointers_[index], 0, sizes_[index]); }
  void copy(std::uint32_t to, std::uint32_t from) {
    (void)gpu_.copy(pointers_[to], pointers_[from], std::min(sizes_[to], sizes_[from]));
  }
  void write(std::uint32_t index, const void* from, std::size_t size) {
    (void)gpu_.copy_to(pointers_[index], from, size);
  }
  void* const* pointers() const { return pointers_.data(); }
  std::size_t num_buffers() const { return pointers_.size(); }
  std::span<const std::uint8_t> bytes(std::size_t i) const {
    return {static_cast<const std::uint8_t*>(pointers_[i]), sizes_[i]};
  }
  std::size_t size(std::size_t i) const { return sizes_[i]; }
  std::uint32_t* status() const { return status_; }
  emulator::Gpu& gpu() { return gpu_; }

  // Bytes of the host on the device, until the run's end.
  std::uint64_t hold(const void* from, std::size_t size) {
    void* memory = gpu_.allocate(size).value();
    (void)gpu_.copy_to(memory, from, size);
    return reinterpret_cast<std::uint64_t>(memory);
  }

 private:
  void add(const std::vector<std::uint8_t>& bytes) {
    pointers_.push_back(gpu_.allocate(bytes.size()).value());
    (void)gpu_.copy_to(pointers_.back(), bytes.data(), bytes.size());
    sizes_.push_back(bytes.size());
  }

  emulator::Gpu gpu_;
  std::vector<std::size_t> sizes_;
  std::vector<void*> pointers_;
  std::uint32_t* status_ = nullptr;
};

}  // namespace

struct BothTargets::Modules {
  emulator::Module cuda;
  rt::CpuModule cpu;
  std::vector<std::size_t> served_by;  // KernelSource's
};

BothTargets::BothTargets(std::unique_ptr<Modules> modules) : modules_(std::move(modules)) {}
BothTargets::BothTargets(BothTargets&&) noexcept = default;
BothTargets::~BothTargets() = default;

rt::Result<BothTargets> BothTargets::compile(const kir::KernelProgram& program) {
  const KernelSource source = emit_cuda(program);
  const auto text = compile_emulated(source);
  if (!text) return tl::unexpected(text.error());
  auto cuda = emulator::Module::load(*text);
  if (!cuda) return tl::unexpected(cuda.error());
  const auto binary = compile_cpu(emit_cpu(program, {.arch = "x86-64"}), {.optimization_level = 1});
  if (!binary) return tl::unexpected(binary.error());
  auto cpu = rt::CpuModule::load(*binary);
  if (!cpu) return tl::unexpected(cpu.error());
  return BothTargets(
      std::make_unique<Modules>(Modules{std::move(*cuda), std::move(*cpu), source.served_by}));
}

class BitsRun::Comparison {
 public:
  Comparison(const kir::KernelProgram& program, const BothTargets::Modules& modules,
             const BitsCase& at)
      : program_(with_call_sizes(program)),
        cuda_(modules.cuda),
        cpu_(modules.cpu),
        served_by_(modules.served_by),
        at_(at),
        by_cuda_(program, at),
        by_cpu_(program, at) {}

  // The step of the runs that follow.
  void set_step(std::int64_t step) {
    env_ = env_of(at_, step);
    sizes_.clear();
    for (HostExprId id : program_.size_exprs) {
      sizes_.push_back(program_.info.exprs->eval(id, env_).value().bits);
    }
    std::copy(std::begin(kBitsDraw), std::end(kBitsDraw), draw_);
    draw_[2] = static_cast<std::uint32_t>(step);
  }

  void begin(rt::EntryKind entry) {
    if (at_.is_session) by_cuda_.begin(program_, entry);
  }

  const kir::KernelProgram& program() const { return program_; }
  const DeviceMemory& by_cuda() const { return by_cuda_; }

  void zero(std::uint32_t index) {
    by_cuda_.zero(index);
    by_cpu_.zero(index);
  }
  void copy(std::uint32_t to, std::uint32_t from) {
    by_cuda_.copy(to, from);
    by_cpu_.copy(to, from);
  }
  void write(std::uint32_t index, const void* from, std::size_t size) {
    by_cuda_.write(index, from, size);
    by_cpu_.write(index, from, size);
  }

  std::string run(const std::vector<rt::Step>& steps) {
    for (const rt::Step& step : steps) {
      std::string error = run_step(step);
      if (!error.empty()) return error;
    }
    return {};
  }

 private:
  std::string run_step(const rt::Step& step) {
    switch (step.kind) {
      case rt::StepKind::Zero:
        zero(step.index);
        return {};
      case rt::StepKind::Copy:
        copy(step.index, step.index2);
        return {};
      case rt::StepKind::CheckHost:
        return {};
      case rt::StepKind::Launch: {
        const kir::Kernel& kernel = program_.kernels[step.index];
        std::string error = launch(kernel);
        return error.empty() ? compare(kernel) : error;
      }
      case rt::StepKind::If:
        return run(is_true(step.index) ? step.body : step.orelse);
      case rt::StepKind::While:
        return run_while(step);
      case rt::StepKind::For:
        return run_for(step);
      case rt::StepKind::Collective:
        break;
    }
    return "a step that needs other ranks";
  }

  // Both memories are equal wherever a program looks.
  bool is_true(std::uint32_t buffer) const { return by_cpu_.bytes(buffer)[0] != 0; }
  std::int64_t value(HostExprId id) const {
    return program_.info.exprs->eval_int(id, env_).value();
  }

  std::string run_while(const rt::Step& step) {
    const std::int64_t at_most = value(step.expr);
    for (std::int64_t i = 0; i < at_most; ++i) {
      std::string error = run(step.cond);
      if (!error.empty() || !is_true(step.index)) return error;
      error = run(step.body);
      if (!error.empty()) return error;
    }
    return {};
  }

  std::string run_for(const rt::Step& step) {
    const std::int64_t end = value(step.expr2);
    for (std::int64_t i = value(step.expr); i < end; ++i) {
      write(step.index, &i, sizeof i);
      std::string error = run(step.body);
      if (!error.empty()) return error;
    }
    return {};
  }

  std::string launch(const kir::Kernel& kernel) {
    const auto groups = static_cast<std::uint64_t>(value(kernel.info.num_groups));
    const rt::KernelArgs args{by_cpu_.pointers(), sizes_.data(), at_.params.data(), draw_,
                              by_cpu_.status,     nullptr};
    if (groups > 0) cpu_.find(kernel.info.symbol)(&args, 0, groups);
    if (groups == 0) return {};
    if (!is_folded(kernel)) return launch_cuda(kernel, groups, rt::GpuFold::None);
    const std::string error =
        at_.is_fold_missing ? std::string() : launch_cuda(kernel, groups, rt::GpuFold::Folds);
    return error.empty() ? launch_cuda(kernel, groups, rt::GpuFold::IsFolded) : error;
  }

  bool is_folded(const kir::Kernel& kernel) const {
    return at_.num_fold_blocks > 0 && cuda_launch(program_, kernel).is_foldable;
  }

  std::string launch_cuda(const kir::Kernel& kernel, std::uint64_t groups, rt::GpuFold fold) {
    const rt::CudaLaunch shape = cuda_launch(program_, kernel);
    const std::uint32_t own = shape.is_single_block ? 1 : at_.num_blocks;
    const std::uint32_t blocks = fold == rt::GpuFold::Folds ? at_.num_fold_blocks : own;
    std::vector<std::uint8_t> value = cuda_args(kernel, groups, fold);
    void* params[] = {value.data()};
    const std::size_t served_by =
        served_by_[static_cast<std::size_t>(&kernel - program_.kernels.data())];
    const std::string symbol =
        shape.is_single_block ? rt::kGpuStepsSymbol : program_.kernels[served_by].info.symbol;
    const rt::CudaLaunch made = shape.is_single_block ? cuda_steps_launch(program_) : shape;
    const auto status = by_cuda_.gpu().launch(cuda_, symbol, static_cast<void**>(params), {blocks},
                                              {made.block_threads}, made.shared_bytes);
    return status ? std::string()
                  : fmt::format("n {}, {} blocks: {}", at_.n, blocks, status.error().message);
  }

  // The table of one tensor and the launch that points to it.
  std::vector<std::uint8_t> cuda_args(const kir::Kernel& kernel, std::uint64_t groups,
                                      rt::GpuFold fold) {
    const rt::GpuTensorLayout layout =
        rt::gpu_tensor_layout(program_.buffers.size(), program_.size_exprs.size(),
                              program_.info.params.size(), program_.kernels.size());
    table_.assign(layout.size_bytes, 0);
    const auto put = [&](std::size_t offset, const void* from, std::size_t size) {
      if (size > 0) std::memcpy(table_.data() + offset, from, size);
    };
    put(layout.buffers, static_cast<const void*>(by_cuda_.pointers()), 8 * by_cuda_.num_buffers());
    put(layout.sizes, sizes_.data(), 8 * sizes_.size());
    put(layout.params, at_.params.data(), 8 * at_.params.size());
    put(layout.draw, draw_, sizeof draw_);
    put(layout.groups + 8 * static_cast<std::size_t>(&kernel - program_.kernels.data()), &groups,
        8);
    const std::vector<std::uint32_t> swapped(program_.info.states.size() + 1);
    rt::GpuLaunch launch;
    launch.tensors = by_cuda_.hold(table_.data(), table_.size());
    launch.swapped = by_cuda_.hold(swapped.data(), 4 * swapped.size());
    launch.status = reinterpret_cast<std::uint64_t>(by_cuda_.status());
    launch.step.value = static_cast<std::int64_t>(fold);
    launch.step.kernel = static_cast<std::uint32_t>(&kernel - program_.kernels.data());
    std::vector<std::uint8_t> bytes(sizeof launch);
    std::memcpy(bytes.data(), &launch, sizeof launch);
    return bytes;
  }

  // Look-back states, scratch of a sort and partials once they are folded are the target's own.
  bool is_private(std::size_t buffer) const {
    for (const kir::Kernel& kernel : program_.kernels) {
      for (const kir::Section& section : kernel.sections) {
        for (const kir::Instr& instr : section.instrs) {
          if (instr.kind == kir::InstrKind::look_back && instr.buffers[0] == buffer) return true;
          if (instr.kind == kir::InstrKind::argsort_row && instr.buffers[2] == buffer) return true;
          if (instr.kind == kir::InstrKind::finish_reduce && is_folded(kernel) &&
              std::ranges::find(instr.buffers, buffer) != instr.buffers.end()) {
            return true;
          }
        }
      }
    }
    return false;
  }

  std::string compare(const kir::Kernel& kernel) const {
    for (std::size_t b = 0; b < by_cpu_.num_buffers(); ++b) {
      const std::string& name = program_.buffers[b].name;
      if (by_cpu_.is_overrun(b)) return kernel.info.symbol + ": cpu: behind buffer " + name;
      const auto cpu = by_cpu_.bytes(b), cuda = by_cuda_.bytes(b);
      if (is_private(b)) continue;
      const auto differs = std::mismatch(cpu.begin(), cpu.end(), cuda.begin());
      if (differs.first == cpu.end()) continue;
      return fmt::format("{}: n {}: buffer {} byte {} of {}: cpu {:02x}, cuda {:02x}",
                         kernel.info.symbol, at_.n, name, differs.first - cpu.begin(), cpu.size(),
                         *differs.first, *differs.second);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (by_cpu_.status[i] == by_cuda_.status()[i]) continue;
      return fmt::format("{}: n {}: status {}: cpu {}, cuda {}", kernel.info.symbol, at_.n, i,
                         by_cpu_.status[i], by_cuda_.status()[i]);
    }
    return {};
  }

  const kir::KernelProgram program_;
  const emulator::Module& cuda_;
  const rt::CpuModule& cpu_;
  const std::vector<std::size_t>& served_by_;
  const BitsCase& at_;
  DeviceMemory by_cuda_;
  HostMemory by_cpu_;
  HostEnv env_;
  std::uint32_t draw_[8] = {};
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint8_t> table_;
};

BitsRun::BitsRun(const kir::KernelProgram& program, const BothTargets& targets, const BitsCase& at)
    : comparison_(std::make_unique<Comparison>(program, *targets.modules_, at)), step_(at.step) {}
BitsRun::~BitsRun() = default;

std::string BitsRun::run(rt::EntryKind entry) {
  comparison_->set_step(entry == rt::EntryKind::Init ? 0 : step_);
  comparison_->begin(entry);
  return comparison_->run(comparison_->program().entries[static_cast<std::size_t>(entry)].steps);
}

void BitsRun::commit_states() {
  const auto& buffers = comparison_->program().buffers;
  for (std::uint32_t to = 0; to < buffers.size(); ++to) {
    for (std::uint32_t from = 0; from < buffers.size(); ++from) {
      const bool is_pair = buffers[to].role == rt::BufferRole::State &&
                           buffers[from].role == rt::BufferRole::StateNext &&
                           buffers[to].role_index == buffers[from].role_index;
      if (is_pair) comparison_->copy(to, from);
    }
  }
}

void BitsRun::zero_states() {
  const auto& buffers = comparison_->program().buffers;
  for (std::uint32_t b = 0; b < buffers.size(); ++b) {
    const bool is_state =
        buffers[b].role == rt::BufferRole::State || buffers[b].role == rt::BufferRole::StateNext;
    if (is_state) comparison_->zero(b);
  }
}

void BitsRun::set_input(const std::vector<std::uint8_t>& input) {
  const auto& buffers = comparison_->program().buffers;
  for (std::uint32_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].role != rt::BufferRole::Gradient) continue;
    comparison_->write(b, input.data(), std::min(input.size(), comparison_->by_cuda().size(b)));
  }
}

std::span<const std::uint8_t> BitsRun::buffer(rt::BufferRole role, std::uint32_t role_index) const {
  const auto& buffers = comparison_->program().buffers;
  for (std::uint32_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].role != role || buffers[b].role_index != role_index) continue;
    return comparison_->by_cuda().bytes(b);
  }
  return {};
}

rt::Result<std::string> compare_targets(const kir::KernelProgram& program, rt::EntryKind entry,
                                        const std::vector<BitsCase>& cases) {
  const auto targets = BothTargets::compile(program);
  if (!targets) return tl::unexpected(targets.error());
  for (const BitsCase& at : cases) {
    std::string error = BitsRun(program, *targets, at).run(entry);
    if (!error.empty()) return error;
  }
  return std::string();
}

}  // namespace cinch::codegen
