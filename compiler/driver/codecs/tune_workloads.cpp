// Workloads of `cinch tune`. On a CPU all contestants of a workload share one session, since the
// place of memory matters more than most numbers. On a GPU they share the caller's memory. Each has
// a session of its own, since launches are planned and code is compiled for its numbers, but states
// and workspace lie at the same offsets of its one allocation.
#include "compiler/driver/codecs/verify_subject.h"

#include <algorithm>
#include <map>

#include "compiler/driver/process/files.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/target.h"
#include "runtime/gpu/events.h"
#include "runtime/gpu/session/session.h"
#include "runtime/session/session.h"

namespace cinch::driver {
namespace {

// A dense, a random and a selecting program; the last one has sequential kernels.
constexpr const char* kPrograms[] = {"onebit", "qsgd", "topk"};
constexpr std::int64_t kCpuSizes[] = {1 << 14, 1 << 17, 1 << 20, 1 << 22};
constexpr std::int64_t kGpuSizes[] = {1 << 16, 1 << 20, 1 << 24};
constexpr std::int64_t kEmulatedSizes[] = {1 << 12};
// A turn handles about this many elements, in as many calls as that takes.
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
    value_or_throw(session_.set_tuning(tuning));
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

// A program of the library on one device, compiled at the first use of a number of warps.
class GpuPrograms {
 public:
  GpuPrograms(std::string name, std::shared_ptr<const rt::GpuDevice> device)
      : name_(std::move(name)), device_(std::move(device)) {}

  std::shared_ptr<const rt::GpuProgram> with_warps(std::int64_t block_warps) {
    auto& program = programs_[block_warps];
    if (program == nullptr) {
      FrontEnd front_end;
      rt::ProgramImage image = service::make_program_image(
          front_end, {.program = name_, .bindings = {}, .text = {}, .is_ahead_of_time = true},
          {codegen::TargetKind::Cuda, device_->arch()}, static_cast<std::uint32_t>(block_warps));
      program = value_or_throw(rt::GpuProgram::load(device_, std::move(image)));
    }
    return program;
  }

 private:
  std::string name_;
  std::shared_ptr<const rt::GpuDevice> device_;
  std::map<std::int64_t, std::shared_ptr<const rt::GpuProgram>> programs_;
};

// A caller's memory on the device: gradient, payload and output of one tensor.
class GpuTensors {
 public:
  GpuTensors(const std::shared_ptr<const rt::GpuDevice>& device, std::span<const float> gradient,
             std::int64_t payload_bound)
      : gradient_(value_or_throw(rt::GpuMemory::allocate(device, gradient.size_bytes()))),
        payload_(value_or_throw(
            rt::GpuMemory::allocate(device, static_cast<std::size_t>(payload_bound)))),
        output_(value_or_throw(rt::GpuMemory::allocate(device, gradient.size_bytes()))) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(gradient.data());
    value_or_throw(device->write(gradient_.address(), {bytes, gradient.size_bytes()}, nullptr));
  }
  rt::GpuAddress gradient() const { return gradient_.address(); }
  rt::GpuAddress output() const { return output_.address(); }
  rt::GpuPayload payload() const {
    return {payload_.address(), static_cast<std::int64_t>(payload_.size_bytes())};
  }

 private:
  rt::GpuMemory gradient_, payload_, output_;
};

class GpuCalls {
 public:
  GpuCalls(rt::GpuSession session, const std::shared_ptr<const rt::GpuDevice>& device,
           std::shared_ptr<const GpuTensors> tensors, int num_calls)
      : session_(std::move(session)),
        timer_(value_or_throw(rt::GpuTimer::create(device))),
        tensors_(std::move(tensors)),
        num_calls_(num_calls) {}

  double run() {
    const rt::GpuAddress from = tensors_->gradient(), to = tensors_->output();
    const rt::GpuPayload payload = tensors_->payload();
    value_or_throw(timer_.start(nullptr));
    for (int i = 0; i < num_calls_; ++i) {
      value_or_throw(session_.encode({&from, 1}, {&payload, 1}, 0, nullptr));
      value_or_throw(session_.decode({&payload, 1}, {&to, 1}, 0, nullptr));
    }
    value_or_throw(timer_.stop(nullptr));
    const double ms = value_or_throw(timer_.milliseconds());
    value_or_throw(value_or_throw(session_.collect(nullptr)).at(0).status);
    return ms;
  }

 private:
  rt::GpuSession session_;
  rt::GpuTimer timer_;
  std::shared_ptr<const GpuTensors> tensors_;
  int num_calls_;
};

// A program and a size. Contestants share a caller's memory while one of them lives.
class GpuWorkload {
 public:
  GpuWorkload(std::shared_ptr<GpuPrograms> programs, std::int64_t num_elems, int num_calls)
      : programs_(std::move(programs)),
        gradient_(bench::made_up_gradient(num_elems)),
        num_calls_(num_calls) {}

  bench::Contestant contestant(const rt::GpuTuning& tuning) {
    rt::GpuSessionOptions options{
        .tensors = {{.rows = static_cast<std::int64_t>(gradient_.size())}}, .tuning = tuning};
    const auto program = programs_->with_warps(tuning.block_warps);
    auto session = value_or_throw(rt::GpuSession::open(program, options));
    auto tensors = tensors_.lock();
    if (tensors == nullptr) {
      tensors = std::make_shared<const GpuTensors>(program->device(), gradient_,
                                                   value_or_throw(session.payload_bound(0)));
      tensors_ = tensors;
    }
    const auto calls = std::make_shared<GpuCalls>(std::move(session), program->device(),
                                                  std::move(tensors), num_calls_);
    return [calls] { return calls->run(); };
  }

 private:
  std::shared_ptr<GpuPrograms> programs_;
  std::vector<float> gradient_;
  int num_calls_;
  std::weak_ptr<const GpuTensors> tensors_;
};

}  // namespace

std::vector<bench::TuningWorkload<rt::CpuTuning>> cpu_workloads(const ExecutionOptions& options) {
  std::vector<bench::TuningWorkload<rt::CpuTuning>> workloads;
  const codegen::Target target = find_target(options, true);
  const Progress progress("compiling programs");
  for (const char* name : kPrograms) {
    FrontEnd front_end;
    const auto program = value_or_throw(
        rt::LoadedProgram::load(compile_program(front_end, {name, {}, {}, {}}, target)));
    for (const std::int64_t num_elems : kCpuSizes) {
      rt::SessionOptions session{.rows = num_elems, .threads = options.threads};
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
      const auto workload = std::make_shared<GpuWorkload>(
          programs, num_elems, is_emulated ? 1 : calls_per_turn(num_elems));
      workloads.emplace_back(
          [workload](const rt::GpuTuning& tuning) { return workload->contestant(tuning); });
    }
  }
  return workloads;
}

}  // namespace cinch::driver
