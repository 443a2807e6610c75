// Workloads of `cinch tune`. On a CPU all contestants of a workload share one session: where memory
// lies makes a larger difference than most numbers. On a GPU each has its own.
#include "compiler/driver/tune_workloads.h"

#include <algorithm>
#include <map>

#include "codegen/emit/kernel_source.h"
#include "compiler/bench/made_up_gradient.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile.h"
#include "runtime/gpu/session.h"
#include "runtime/gpu/timer.h"
#include "runtime/session/session.h"

namespace cinch::driver {

namespace {

// Dense, random and selecting; the last has kernels that go in order.
constexpr const char* kPrograms[] = {"onebit", "qsgd", "topk"};
constexpr std::int64_t kCpuSizes[] = {1 << 14, 1 << 17, 1 << 20, 1 << 22};
constexpr std::int64_t kGpuSizes[] = {1 << 16, 1 << 20, 1 << 24};
constexpr std::int64_t kEmulatedSizes[] = {1 << 12};
// A turn is about so many elements long, in as many calls as that takes.
constexpr std::int64_t kTurnElems = 1 << 18;

int calls_per_turn(std::int64_t num_elems) {
  return static_cast<int>(std::max<std::int64_t>(kTurnElems / num_elems, 1));
}

// ---- CPU ----

class CpuCalls {
 public:
  CpuCalls(std::shared_ptr<const rt::LoadedProgram> program, const rt::SessionOptions& options)
      : session_(value_or_throw(rt::Session::open(std::move(program), options))),
        gradient_(bench::made_up_gradient(options.rows)),
        out_(gradient_.size()) {}

  double run(const rt::CpuTuning& tuning) {
    session_.set_tuning(tuning);
    return bench::timed_ms([this] {
      const int calls = calls_per_turn(static_cast<std::int64_t>(out_.size()));
      for (int i = 0; i < calls; ++i) {
        const auto payload = value_or_throw(session_.encode(rt::ConstTensorView(gradient_), 0));
        value_or_throw(session_.decode(payload, rt::TensorView(std::span(out_)), 0));
      }
    });
  }

 private:
  rt::Session session_;
  std::vector<float> gradient_, out_;
};

// ---- GPU ----

// A program of the library for one device, compiled when a number of warps is asked for.
class GpuPrograms {
 public:
  GpuPrograms(std::string name, std::shared_ptr<const rt::GpuDevice> device)
      : name_(std::move(name)), device_(std::move(device)) {}

  std::shared_ptr<const rt::GpuProgram> with_warps(std::int64_t block_warps) {
    auto& program = programs_[block_warps];
    if (program == nullptr) {
      FrontEnd front_end;
      rt::ProgramImage image = service::make_program_image(
          front_end, {name_, {}, {}, {}}, {codegen::TargetKind::Cuda, device_->arch()},
          static_cast<std::uint32_t>(block_warps));
      program = value_or_throw(rt::GpuProgram::load(device_, std::move(image)));
    }
    return program;
  }

 private:
  std::string name_;
  std::shared_ptr<const rt::GpuDevice> device_;
  std::map<std::int64_t, std::shared_ptr<const rt::GpuProgram>> programs_;
};

class GpuCalls {
 public:
  GpuCalls(const std::shared_ptr<const rt::GpuProgram>& program,
           const rt::GpuSessionOptions& options, const std::vector<float>& gradient, int num_calls)
      : session_(value_or_throw(rt::GpuSession::open(program, options))),
        timer_(value_or_throw(rt::GpuTimer::create(program->device()))),
        num_calls_(num_calls) {
    const std::size_t size_bytes = 4 * gradient.size();
    const std::int64_t bound = value_or_throw(session_.payload_bound(0));
    for (const std::size_t bytes : {size_bytes, static_cast<std::size_t>(bound), size_bytes}) {
      memory_.push_back(value_or_throw(rt::GpuMemory::allocate(program->device(), bytes)));
    }
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(gradient.data());
    value_or_throw(program->device()->write(memory_[0].address(), {bytes, size_bytes}, nullptr));
    payload_ = {memory_[1].address(), bound};
  }

  double run() {
    const rt::GpuAddress from = memory_[0].address(), to = memory_[2].address();
    value_or_throw(timer_.start(nullptr));
    for (int i = 0; i < num_calls_; ++i) {
      value_or_throw(session_.encode({&from, 1}, {&payload_, 1}, 0, nullptr));
      value_or_throw(session_.decode({&payload_, 1}, {&to, 1}, 0, nullptr));
    }
    value_or_throw(timer_.stop(nullptr));
    const double ms = value_or_throw(timer_.milliseconds());
    value_or_throw(value_or_throw(session_.collect(nullptr)).at(0).status);
    return ms;
  }

 private:
  rt::GpuSession session_;
  rt::GpuTimer timer_;
  int num_calls_;
  std::vector<rt::GpuMemory> memory_;  // gradient, payload, output
  rt::GpuPayload payload_;
};

}  // namespace

std::vector<bench::TuningWorkload<rt::CpuTuning>> cpu_workloads(const ExecutionOptions& options) {
  std::vector<bench::TuningWorkload<rt::CpuTuning>> workloads;
  const codegen::Target target = find_target(options, true);
  for (const char* name : kPrograms) {
    FrontEnd front_end;
    const auto program = value_or_throw(rt::LoadedProgram::load(
        service::make_program_image(front_end, {name, {}, {}, {}}, target)));
    for (const std::int64_t num_elems : kCpuSizes) {
      rt::SessionOptions session;
      session.rows = num_elems;
      session.threads = options.threads;
      const auto calls = std::make_shared<CpuCalls>(program, session);
      workloads.emplace_back([calls](const rt::CpuTuning& tuning) {
        return [calls, tuning] { return calls->run(tuning); };
      });
    }
  }
  return workloads;
}

std::vector<bench::TuningWorkload<rt::GpuTuning>> gpu_workloads(
    const std::shared_ptr<const rt::GpuDevice>& device) {
  std::vector<bench::TuningWorkload<rt::GpuTuning>> workloads;
  const bool is_emulated = device->arch() == codegen::kEmulatedArch;
  const std::span<const std::int64_t> sizes =
      is_emulated ? std::span<const std::int64_t>(kEmulatedSizes) : kGpuSizes;
  for (const char* name : std::span(kPrograms).first(is_emulated ? 1 : std::size(kPrograms))) {
    const auto programs = std::make_shared<GpuPrograms>(name, device);
    for (const std::int64_t num_elems : sizes) {
      workloads.emplace_back(
          [=, gradient = std::make_shared<const std::vector<float>>(
                  bench::made_up_gradient(num_elems))](const rt::GpuTuning& tuning) {
            rt::GpuSessionOptions session;
            session.tensors = {{.rows = num_elems}};
            session.tuning = tuning;
            const auto calls =
                std::make_shared<GpuCalls>(programs->with_warps(tuning.block_warps), session,
                                           *gradient, is_emulated ? 1 : calls_per_turn(num_elems));
            return [calls] { return calls->run(); };
          });
    }
  }
  return workloads;
}

}  // namespace cinch::driver
