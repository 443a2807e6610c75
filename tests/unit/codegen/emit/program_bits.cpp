// Bodies of program_bits.h.
#include "tests/unit/codegen/emit/program_bits.h"

#include <fmt/format.h>

#include <cstring>

#include "codegen/emit/cpu.h"
#include "codegen/jit/clang_jit.h"
#include "runtime/module/cpu_module.h"
#include "tests/unit/codegen/emit/lockstep.h"

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

// Buffers of one run; each has bytes behind it that nobody may touch.
class Memory {
 public:
  Memory(const kir::KernelProgram& program, const BitsCase& at) {
    for (const rt::BufferInfo& info : program.buffers) {
      const HostEnv env = env_of(at, at.step);
      const auto size = static_cast<std::size_t>(
          program.info.exprs
              .eval_int(program.info.exprs.has_count(info.size_bytes)
                            ? HostExprPool(program.info.exprs).upper_bound(info.size_bytes)
                            : info.size_bytes,
                        env)
              .value());
      std::vector<std::uint8_t> bytes(size + kCanaryBytes, kCanary);
      fill(program, info, at, bytes, size);
      sizes_.push_back(size);
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
  const std::vector<std::uint8_t>& bytes(std::size_t i) const { return buffers_[i]; }
  std::size_t size(std::size_t i) const { return sizes_[i]; }
  std::uint32_t status[rt::kStatusWords] = {};

 private:
  // Packed runs end in zero bits, as payload and state do.
  static void fill(const kir::KernelProgram& program, const rt::BufferInfo& info,
                   const BitsCase& at, std::vector<std::uint8_t>& bytes, std::size_t size) {
    if (info.role == rt::BufferRole::Constant) {
      std::memcpy(bytes.data(), program.constants[info.role_index].data(), size);
      return;
    }
    if (is_bool(info.dtype) && info.storage_bits == 8) {
      for (std::size_t i = 0; i < size; ++i) bytes[i] = at.input[i % at.input.size()] & 1;
      return;
    }
    for (std::size_t i = 0; i < size; ++i) bytes[i] = at.input[i % at.input.size()];
    const std::size_t bits = static_cast<std::size_t>(at.n) * info.storage_bits;
    if (info.storage_bits % 8 && bits % 8 && size == (bits + 7) / 8) {
      bytes[size - 1] &= static_cast<std::uint8_t>((1u << bits % 8) - 1);
    }
  }

  std::vector<std::vector<std::uint8_t>> buffers_;
  std::vector<std::size_t> sizes_;
  std::vector<void*> pointers_;
};

}  // namespace

struct BothTargets::Modules {
  LockstepModule cuda;
  rt::CpuModule cpu;
};

BothTargets::BothTargets(std::unique_ptr<Modules> modules) : modules_(std::move(modules)) {}
BothTargets::BothTargets(BothTargets&&) noexcept = default;
BothTargets::~BothTargets() = default;

rt::Result<BothTargets> BothTargets::compile(const kir::KernelProgram& program) {
  auto cuda = LockstepModule::compile(program);
  if (!cuda) return tl::unexpected(cuda.error());
  const auto binary = compile_cpu(emit_cpu(program, {.arch = "x86-64"}), {.optimization_level = 1});
  if (!binary) return tl::unexpected(binary.error());
  auto cpu = rt::CpuModule::load(*binary);
  if (!cpu) return tl::unexpected(cpu.error());
  return BothTargets(std::make_unique<Modules>(Modules{std::move(*cuda), std::move(*cpu)}));
}

class BitsRun::Comparison {
 public:
  Comparison(const kir::KernelProgram& program, const LockstepModule& cuda,
             const rt::CpuModule& cpu, const BitsCase& at)
      : program_(program),
        cuda_(cuda),
        cpu_(cpu),
        at_(at),
        by_cuda_(program, at),
        by_cpu_(program, at) {}

  // The step of the runs that follow.
  void set_step(std::int64_t step) {
    env_ = env_of(at_, step);
    sizes_.clear();
    for (HostExprId id : program_.size_exprs) {
      sizes_.push_back(program_.info.exprs.eval(id, env_).value().bits);
    }
    std::copy(std::begin(kBitsDraw), std::end(kBitsDraw), draw_);
    draw_[2] = static_cast<std::uint32_t>(step);
  }

  const kir::KernelProgram& program() const { return program_; }
  const Memory& by_cuda() const { return by_cuda_; }

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
    }
    return "a step of no kind";
  }

  // Both memories are equal wherever a program looks.
  bool is_true(std::uint32_t buffer) const { return by_cpu_.bytes(buffer)[0] != 0; }
  std::int64_t value(HostExprId id) const { return program_.info.exprs.eval_int(id, env_).value(); }

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
    const rt::CudaLaunch shape = cuda_launch(program_, kernel);
    const std::uint32_t blocks = shape.is_single_block ? 1 : at_.num_blocks;
    const auto status =
        cuda_.launch(kernel.info.symbol, cuda_args(groups), blocks, shape.block_threads);
    return status ? std::string() : status.error().message;
  }

  std::vector<std::uint8_t> cuda_args(std::uint64_t groups) {
    const CudaArgsLayout layout = cuda_args_layout(program_);
    std::vector<std::uint8_t> bytes(layout.size_bytes);
    const auto put = [&](std::size_t offset, const void* from, std::size_t size) {
      if (size > 0) std::memcpy(bytes.data() + offset, from, size);
    };
    put(layout.buffers, static_cast<const void*>(by_cuda_.pointers()), 8 * by_cuda_.num_buffers());
    put(layout.sizes, sizes_.data(), 8 * sizes_.size());
    put(layout.params, at_.params.data(), 8 * at_.params.size());
    put(layout.draw, draw_, sizeof draw_);
    const std::uint32_t* status = by_cuda_.status;
    put(layout.status, static_cast<const void*>(&status), 8);
    put(layout.num_groups, &groups, 8);
    return bytes;
  }

  // Look-back states and scratch of a sort are the target's own.
  bool is_private(std::size_t buffer) const {
    for (const kir::Kernel& kernel : program_.kernels) {
      for (const kir::Section& section : kernel.sections) {
        for (const kir::Instr& instr : section.instrs) {
          if (instr.kind == kir::InstrKind::look_back && instr.buffers[0] == buffer) return true;
          if (instr.kind == kir::InstrKind::argsort_row && instr.buffers[2] == buffer) return true;
        }
      }
    }
    return false;
  }

  std::string compare(const kir::Kernel& kernel) const {
    for (std::size_t b = 0; b < by_cpu_.num_buffers(); ++b) {
      const auto& cpu = by_cpu_.bytes(b);
      const auto& cuda = by_cuda_.bytes(b);
      if (cpu == cuda) continue;
      const std::size_t begin = is_private(b) ? by_cpu_.size(b) : 0;
      for (std::size_t i = begin; i < cpu.size(); ++i) {
        if (cpu[i] == cuda[i]) continue;
        return fmt::format("{}: n {}: buffer {} byte {} of {}: cpu {:02x}, cuda {:02x}",
                           kernel.info.symbol, at_.n, program_.buffers[b].name, i, by_cpu_.size(b),
                           cpu[i], cuda[i]);
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (by_cpu_.status[i] == by_cuda_.status[i]) continue;
      return fmt::format("{}: n {}: status {}: cpu {}, cuda {}", kernel.info.symbol, at_.n, i,
                         by_cpu_.status[i], by_cuda_.status[i]);
    }
    return {};
  }

  const kir::KernelProgram& program_;
  const LockstepModule& cuda_;
  const rt::CpuModule& cpu_;
  const BitsCase& at_;
  Memory by_cuda_, by_cpu_;
  HostEnv env_;
  std::uint32_t draw_[8] = {};
  std::vector<std::uint64_t> sizes_;
};

BitsRun::BitsRun(const kir::KernelProgram& program, const BothTargets& targets, const BitsCase& at)
    : comparison_(
          std::make_unique<Comparison>(program, targets.modules_->cuda, targets.modules_->cpu, at)),
      step_(at.step) {}
BitsRun::~BitsRun() = default;

std::string BitsRun::run(rt::EntryKind entry) {
  comparison_->set_step(entry == rt::EntryKind::Init ? 0 : step_);
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
    return std::span(comparison_->by_cuda().bytes(b)).first(comparison_->by_cuda().size(b));
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
