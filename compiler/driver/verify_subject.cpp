#include "compiler/driver/verify_subject.h"

#include <fmt/format.h>

#include "codegen/jit/clang_jit.h"
#include "compiler/driver/codec.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile.h"
#include "runtime/core/check.h"
#include "runtime/image/fingerprint.h"
#include "runtime/module/cpu_module.h"
#include "runtime/session/parameters.h"
#include "runtime/session/state_file.h"

namespace cinch::driver {

namespace {

// What the interpreter and the emulator do in some hundredths of a second.
constexpr std::int64_t kMostSlowElements = 5000;

// What a call of a codec gives, its errors as values.
template <typename Call>
auto as_result(const Call& call) -> rt::Result<decltype(call())> {
  try {
    return call();
  } catch (const CommandError& error) {
    return rt::fail(error.kind().value_or(rt::ErrorKind::InvalidArgument), error.what());
  } catch (const InternalError& error) {
    return rt::fail(rt::ErrorKind::Internal, error.what());
  }
}

class CodecTensor : public verify::Tensor {
 public:
  CodecTensor(const rt::ProgramInfo& info, const verify::TensorRequest& request,
              std::unique_ptr<Codec> codec)
      : info_(info), request_(request), codec_(std::move(codec)) {}

  rt::Result<verify::Bytes> encode(std::span<const float> gradient, std::uint64_t step) override {
    return as_result([&] { return codec_->encode(rt::ConstTensorView(gradient), step); });
  }
  rt::Status decode(std::span<const std::uint8_t> payload, std::span<float> out,
                    std::uint64_t step) override {
    return as_result([&] {
      codec_->decode(payload, out, step);
      return rt::Ok{};
    });
  }
  rt::Status finish(std::span<float> sum, std::uint64_t step) override {
    return as_result([&] {
      codec_->finish(sum, step);
      return rt::Ok{};
    });
  }
  rt::Result<std::int64_t> payload_bound(std::uint64_t step) override {
    return as_result([&] { return codec_->payload_bound(step); });
  }
  std::vector<verify::Bytes> states() override {
    const verify::Bytes file = codec_->states_as_bytes();
    const rt::ParameterValues parameters(info_);
    HostEnv env;
    env.n = request_.shape.num_elems();
    env.rows = request_.shape.rows;
    env.cols = request_.shape.cols;
    env.world = request_.world;
    env.params = parameters.host_values();
    std::vector<rt::StateView> expected;
    for (const rt::StateInfo& state : info_.states) {
      std::int64_t elements = 1;
      for (int d = 0; d < state.type.rank; ++d) {
        elements *= value_or_throw(info_.exprs.eval_int(state.type.dims[d], env));
      }
      // Only the length of an expected state is looked at; the file holds more than that.
      const auto size_bytes = static_cast<std::size_t>(packed_bytes(state.type.dtype, elements));
      expected.push_back({state.name, dtype_name(state.type.dtype), {file.data(), size_bytes}});
    }
    const rt::StateFileKey key{rt::fingerprint(info_), request_.shape.rows, request_.shape.cols};
    std::vector<verify::Bytes> states;
    for (const auto bytes : value_or_throw(rt::read_states(file, key, expected))) {
      states.emplace_back(bytes.begin(), bytes.end());
    }
    return states;
  }

 private:
  const rt::ProgramInfo& info_;
  verify::TensorRequest request_;
  std::unique_ptr<Codec> codec_;
};

// A compiled program and the options that its factory reads when it opens a codec.
struct Machine {
  explicit Machine(RunOptions wanted) : options(std::move(wanted)), factory(options) {}
  RunOptions options;
  CodecFactory factory;
};

class CodecTarget : public verify::Target {
 public:
  CodecTarget(std::shared_ptr<Machine> machine, std::uint32_t threads)
      : machine_(std::move(machine)), threads_(threads) {}

  rt::Result<std::unique_ptr<verify::Tensor>> open(
      const verify::TensorRequest& request) const override {
    machine_->options.seed = request.seed;
    machine_->options.execution.threads = threads_;
    return as_result([&]() -> std::unique_ptr<verify::Tensor> {
      const Shape shape{request.shape.rows, request.shape.cols};
      return std::make_unique<CodecTensor>(
          machine_->factory.info(), request,
          machine_->factory.open(shape, request.worker, request.world));
    });
  }

 private:
  std::shared_ptr<Machine> machine_;
  std::uint32_t threads_;
};

std::shared_ptr<Machine> make_machine(const VerifyOptions& options,
                                      const ExecutionOptions& execution, bool interpret = false) {
  RunOptions run;
  run.program = options.program;
  run.execution = execution;
  run.interpret = interpret;
  return std::make_shared<Machine>(std::move(run));
}

std::unique_ptr<const verify::Target> make_target(std::shared_ptr<Machine> machine,
                                                  std::uint32_t threads, std::string name,
                                                  std::string arguments,
                                                  std::int64_t most_elements = 0) {
  auto target = std::make_unique<CodecTarget>(std::move(machine), threads);
  target->name = std::move(name);
  target->arguments = std::move(arguments);
  target->most_elements = most_elements;
  return target;
}

std::string on_cpu(const std::string& arch, std::uint32_t threads) {
  return fmt::format("--cpu {} --threads {}", arch, threads);
}

void add_cpu_targets(const VerifyOptions& options, const std::shared_ptr<Machine>& main,
                     const std::string& arch, std::uint32_t main_threads,
                     verify::Subject& subject) {
  for (std::uint32_t threads : {1u, 2u, 5u}) {
    if (threads == main_threads) continue;
    subject.threads.push_back(
        make_target(main, threads, fmt::format("{} threads", threads), on_cpu(arch, threads)));
  }
  for (const std::string& other : codegen::cpu_archs()) {
    if (other == arch || !rt::host_supports(other)) continue;
    ExecutionOptions execution = options.execution;
    execution.cpu = other;
    subject.vector_widths.push_back(make_target(make_machine(options, execution), main_threads,
                                                other, on_cpu(other, main_threads)));
  }
}

void add_devices(const VerifyOptions& options, verify::Subject& subject) {
  subject.devices.push_back(make_target(make_machine(options, {}, /*interpret=*/true), 1,
                                        "interpreter", "--interpret", kMostSlowElements));
  if (is_gpu(options.execution)) {
    subject.devices.push_back(make_target(make_machine(options, {}), 1, "cpu", "--device cpu"));
  }
  if (options.execution.device == "emulated") return;
  ExecutionOptions emulated;
  emulated.device = "emulated";
  subject.devices.push_back(make_target(make_machine(options, emulated), 1, "emulated GPU",
                                        "--device emulated", kMostSlowElements));
}

sema::CheckedProgram check(const ProgramOptions& program) {
  FrontEnd front_end;
  sema::CheckedProgram checked =
      service::check_program(front_end, service::find_program(program), program.bindings);
  if (checked.info.has_sync) {
    throw CommandError(ExitCode::Unavailable,
                       checked.info.name +
                           " synchronises by a `sync` body, which this version runs but does not "
                           "verify");
  }
  return checked;
}

ir::Program lower(const ProgramOptions& program) {
  service::FrontEnd silent;
  return service::make_ir(silent, program);
}

}  // namespace

VerifiedProgram::VerifiedProgram(const VerifyOptions& options)
    : checked(check(options.program)), ir(lower(options.program)) {
  // What no pass but the last knows.
  checked.info.aggregation = ir.info.aggregation;
  subject.checked = &checked;
  subject.ir = &ir;
  const auto main = make_machine(options, options.execution);
  if (is_gpu(options.execution)) {
    subject.main =
        make_target(main, 1, options.execution.device, "--device " + options.execution.device);
  } else {
    const std::string arch = find_target(options.execution, true).arch;
    // Many tensors are opened; threads of their own would cost more than they save.
    const std::uint32_t threads = std::max(options.execution.threads, 1u);
    subject.main = make_target(main, threads, arch, on_cpu(arch, threads));
    add_cpu_targets(options, main, arch, threads, subject);
  }
  add_devices(options, subject);
}

}  // namespace cinch::driver
