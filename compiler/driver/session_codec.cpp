// A codec over compiled kernels, and the choice between it and the interpreter.
#include <fmt/format.h>

#include "compiler/driver/codec.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/gpu_codec.h"
#include "compiler/driver/interrupt.h"
#include "compiler/driver/output_file.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile.h"
#include "runtime/call/payload_sum.h"
#include "runtime/call/state_file.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/image/fingerprint.h"
#include "runtime/session/session.h"

namespace cinch::driver {

namespace {

class SessionCodec : public Codec {
 public:
  SessionCodec(std::shared_ptr<const rt::LoadedProgram> program, const rt::SessionOptions& options,
               const std::vector<sema::Binding>& bindings)
      : session_(value_or_throw(rt::Session::open(std::move(program), options))) {
    for (const sema::Binding& binding : bindings) {
      value_or_throw(session_.set_parameter(binding.name, binding.value), "--set");
    }
  }

  std::vector<std::uint8_t> encode(rt::ConstTensorView gradient, std::uint64_t step) override {
    const Cancellable scope;
    const auto payload = value_or_throw(session_.encode(gradient, step));
    return {payload.begin(), payload.end()};
  }
  void decode(std::span<const std::uint8_t> payload, std::span<float> out,
              std::uint64_t step) override {
    const Cancellable scope;
    value_or_throw(session_.decode(payload, rt::TensorView(out), step));
  }
  void finish(std::span<float> sum, std::uint64_t step) override {
    const Cancellable scope;
    value_or_throw(session_.finish(sum, rt::TensorView(sum), step));
  }
  void sync(rt::ConstTensorView gradient, std::span<float> update, std::uint64_t step,
            rt::RankExchange& ranks) override {
    value_or_throw(session_.sync(gradient, rt::TensorView(update), step, ranks));
  }
  std::int64_t payload_bound(std::uint64_t step) override {
    return value_or_throw(session_.payload_bound(step));
  }
  void load_states(const std::string& path) override {
    const std::vector<std::uint8_t> file = value_or_throw(rt::read_state_file(path));
    value_or_throw(session_.set_states(file), path);
  }
  void save_states(const std::string& path) override {
    write_file(path, value_or_throw(session_.states_as_bytes()));
  }
  std::vector<std::uint8_t> states_as_bytes() override {
    return value_or_throw(session_.states_as_bytes());
  }

 private:
  rt::Session session_;
};

}  // namespace

std::unique_ptr<Codec> open_session_codec(std::shared_ptr<const rt::LoadedProgram> program,
                                          const std::vector<sema::Binding>& bindings,
                                          const RunOptions& options, Shape shape,
                                          std::uint32_t worker, std::uint32_t world) {
  rt::SessionOptions session;
  session.rows = shape.rows;
  session.cols = shape.cols;
  session.threads = options.execution.threads;
  session.world = world;
  session.worker = worker;
  session.seed = options.seed;
  session.cancelled = Cancellable::flag();
  return std::make_unique<SessionCodec>(std::move(program), session, bindings);
}

CodecFactory::CodecFactory(const RunOptions& options) : options_(options) {
  FrontEnd front_end;
  if (options.interpret) {
    interpreted_ =
        std::make_shared<const ir::Program>(service::make_ir(front_end, options.program));
    info_ = &interpreted_->info;
  } else {
    std::optional<rt::ProgramImage> image = find_image(options.program, options.execution);
    if (image) {
      bindings_ = service::parse_bindings(options.program.bindings);
    } else {
      image = service::make_program_image(front_end, options.program,
                                          find_target(options.execution, true));
    }
    if (is_gpu(options.execution)) {
      on_gpu_ =
          value_or_throw(rt::GpuProgram::load(open_gpu(options.execution), std::move(*image)));
      info_ = &on_gpu_->info();
    } else {
      loaded_ = value_or_throw(rt::LoadedProgram::load(std::move(*image)));
      info_ = &loaded_->info();
    }
  }
}

std::string CodecFactory::fingerprint() const {
  const std::array<std::uint64_t, 2> words = rt::fingerprint(info());
  return fmt::format("{:016x}{:016x}", words[1], words[0]);
}

void CodecFactory::require_payloads(const char* call) const {
  if (!info().has_sync) return;
  throw CommandError(ExitCode::AtFault,
                     fmt::format("{} has no {}: it synchronises by a `sync` body, which `cinch run "
                                 "--ranks` runs",
                                 info().name, call));
}

std::vector<std::uint8_t> CodecFactory::sum_payloads(
    Shape shape, std::span<const std::vector<std::uint8_t>> payloads, std::uint64_t step) const {
  rt::ParameterValues parameters(info());
  for (const sema::Binding& binding : bindings_) {
    value_or_throw(parameters.set(binding.name, binding.value), "--set");
  }
  rt::TensorFacts facts = rt::facts_for(info(), {shape.rows, shape.cols});
  facts.world = static_cast<std::uint32_t>(payloads.size());
  const rt::PayloadHeader header = value_or_throw(rt::read_payload_header(payloads.front()));
  const rt::PayloadExpectation expected{&info(), rt::fingerprint(info()), header.decode_hash,
                                        rt::host_env(facts, parameters, step)};
  const std::vector<std::span<const std::uint8_t>> views(payloads.begin(), payloads.end());
  return value_or_throw(rt::sum_payloads(expected, views));
}

std::unique_ptr<Codec> CodecFactory::open(Shape shape, std::uint32_t worker,
                                          std::uint32_t world) const {
  if (interpreted_) return open_interpreter_codec(interpreted_, options_, shape, worker, world);
  if (on_gpu_) return open_gpu_codec(on_gpu_, bindings_, options_, shape, worker, world);
  return open_session_codec(loaded_, bindings_, options_, shape, worker, world);
}

}  // namespace cinch::driver
