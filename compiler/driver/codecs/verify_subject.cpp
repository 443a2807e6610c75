#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "codegen/jit/clang_jit.h"
#include "codegen/jit/library.h"
#include "compiler/driver/codecs/verify_subject.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "compiler/driver/target.h"
#include "runtime/call/state_file.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/module/cpu_module.h"

namespace cinch::driver {
namespace {

// The interpreter and the emulator handle this many in some hundredths of a second.
constexpr std::int64_t kMostSlowElements = 5000;

// Makes a call of a codec and returns its errors as values.
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

// An input keeps nothing.
std::vector<verify::Bytes> states_of(Codec& codec, const rt::ProgramInfo& info) {
  const verify::Bytes file = codec.states_as_bytes();
  const rt::StateFile states = value_or_throw(rt::parse_states(file));
  std::vector<verify::Bytes> bytes;
  bytes.resize(info.states.size());
  auto saved = states.states.begin();
  for (std::size_t i = 0; i < info.states.size(); ++i) {
    if (info.states[i].is_input) continue;
    bytes[i].assign(saved->bytes.begin(), saved->bytes.end());
    ++saved;
  }
  return bytes;
}

class CodecTensor : public verify::Tensor {
 public:
  CodecTensor(std::unique_ptr<Codec> codec, const rt::ProgramInfo& info,
              const verify::TensorRequest& request)
      : codec_(std::move(codec)), info_(info), request_(request) {}

  rt::Result<verify::Bytes> encode(std::span<const float> gradient, std::uint64_t step) override {
    request_.require_time();
    return as_result([&] { return codec_->encode(rt::ConstTensorView(gradient), step); });
  }
  rt::Status decode(std::span<const std::uint8_t> payload, std::span<float> out,
                    std::uint64_t step) override {
    request_.require_time();
    return as_result([&] {
      codec_->decode(payload, out, step);
      return rt::Ok{};
    });
  }
  rt::Status finish(std::span<float> sum, std::uint64_t step) override {
    request_.require_time();
    return as_result([&] {
      codec_->finish(sum, step);
      return rt::Ok{};
    });
  }
  rt::Result<std::int64_t> payload_bound(std::uint64_t step) override {
    return as_result([&] { return codec_->payload_bound(step); });
  }
  std::vector<verify::Bytes> states() override { return states_of(*codec_, info_); }

 protected:
  Codec& codec() { return *codec_; }
  const verify::TensorRequest& request() const { return request_; }

 private:
  std::unique_ptr<Codec> codec_;
  const rt::ProgramInfo& info_;
  verify::TensorRequest request_;
};

// A program with a `sync` body in a world of one rank; its update is used as the payload.
class LoneTensor : public CodecTensor {
 public:
  using CodecTensor::CodecTensor;

  rt::Result<verify::Bytes> encode(std::span<const float> gradient, std::uint64_t step) override {
    request().require_time();
    return as_result([&] {
      std::vector<float> update(gradient.size());
      rt::LoneRank ranks;
      codec().sync(rt::ConstTensorView(gradient), update, step, ranks);
      verify::Bytes bytes(update.size() * sizeof(float));
      if (!bytes.empty()) std::memcpy(bytes.data(), update.data(), bytes.size());
      return bytes;
    });
  }
  rt::Status decode(std::span<const std::uint8_t> payload, std::span<float> out,
                    std::uint64_t) override {
    if (!payload.empty()) std::memcpy(out.data(), payload.data(), payload.size());
    return rt::Ok{};
  }
  rt::Status finish(std::span<float>, std::uint64_t) override { return rt::Ok{}; }
};

class CodecRanks : public verify::Ranks {
 public:
  CodecRanks(const verify::TensorRequest& request, const CodecFactory& factory)
      : group_(factory, {request.shape.rows, request.shape.cols}, request.world),
        info_(factory.info()),
        request_(request) {}

  rt::Result<std::vector<std::vector<float>>> sync(std::span<const std::vector<float>> gradients,
                                                   std::uint64_t step) override {
    request_.require_time();
    const std::vector<rt::ConstTensorView> views(gradients.begin(), gradients.end());
    return as_result([&] { return group_.sync(views, step); });
  }
  std::vector<std::vector<verify::Bytes>> states() override {
    std::vector<std::vector<verify::Bytes>> all;
    all.reserve(group_.world());
    for (std::uint32_t rank = 0; rank < group_.world(); ++rank) {
      all.push_back(states_of(group_.codec(rank), info_));
    }
    return all;
  }

 private:
  RankGroup group_;
  const rt::ProgramInfo& info_;
  verify::TensorRequest request_;
};

// Ranks that can be halved are on two machines, others on one (0).
std::uint32_t machine_ranks_of(std::size_t world) {
  return world % 2 == 0 ? static_cast<std::uint32_t>(world / 2) : 0;
}

// A compiled program, and the options that its factory reads when it opens a codec.
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
    prepare(request);
    return as_result([&]() -> std::unique_ptr<verify::Tensor> {
      const Shape shape{request.shape.rows, request.shape.cols};
      const CodecFactory& factory = machine_->factory;
      auto codec = factory.open(shape, request.worker, request.world);
      if (factory.info().has_sync) {
        return std::make_unique<LoneTensor>(std::move(codec), factory.info(), request);
      }
      return std::make_unique<CodecTensor>(std::move(codec), factory.info(), request);
    });
  }

  rt::Result<std::unique_ptr<verify::Ranks>> open_ranks(
      const verify::TensorRequest& request) const override {
    prepare(request);
    return as_result([&]() -> std::unique_ptr<verify::Ranks> {
      return std::make_unique<CodecRanks>(request, machine_->factory);
    });
  }

 private:
  void prepare(const verify::TensorRequest& request) const {
    machine_->options.seed = request.seed;
    machine_->options.machine_ranks = machine_ranks_of(request.world);
    machine_->options.execution.threads = threads_;
  }

  std::shared_ptr<Machine> machine_;
  std::uint32_t threads_;
};

std::shared_ptr<Machine> make_machine(const VerifyOptions& options,
                                      const ExecutionOptions& execution, bool interpret = false) {
  RunOptions run{.program = options.program, .execution = execution, .interpret = interpret};
  run.makes_up_inputs = true;
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
    if (other == arch || !codegen::has_images(other) || !rt::host_supports(other)) continue;
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
  return service::check_program(front_end, service::find_program(program), program.bindings,
                                program.is_carrier);
}

}  // namespace

VerifiedProgram::VerifiedProgram(const VerifyOptions& options)
    : checked(check(options.program)), ir(service::make_ir(silent, options.program)) {
  // Only the last pass knows this.
  checked.info.aggregation = ir.info.aggregation;
  subject.checked = &checked;
  subject.ir = &ir;
  subject.call_extern = codegen::call_extern;
  subject.sources = &silent.sources;
  const auto main = make_machine(options, options.execution);
  if (is_gpu(options.execution)) {
    subject.main =
        make_target(main, 1, options.execution.device, "--device " + options.execution.device);
  } else {
    const std::string arch = find_target(options.execution, true).arch;
    // Many tensors are opened; a thread pool for each would cost more than it saves.
    const std::uint32_t threads = std::max(options.execution.threads, 1u);
    subject.main = make_target(main, threads, arch, on_cpu(arch, threads));
    add_cpu_targets(options, main, arch, threads, subject);
  }
  add_devices(options, subject);
  if (checked.info.carrier.kind == rt::CarrierKind::Program) add_carrier(options);
}

void VerifiedProgram::add_carrier(VerifyOptions options) {
  options.program.is_carrier = true;
  carrier = check(options.program);
  subject.carrier = &*carrier;
  subject.carrier_target =
      make_target(make_machine(options, options.execution), std::max(options.execution.threads, 1u),
                  subject.main->name, "");
}

namespace {

using nlohmann::json;

std::string stem_of(const std::string& path) {
  return path.ends_with(".npy") ? path.substr(0, path.size() - 4) : path;
}

// Quotes a word for the shell.
std::string quoted(const std::string& word) {
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:=+,@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> write_inputs(const std::string& path,
                                      const std::vector<verify::Input>& inputs) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const verify::Shape& shape = inputs[i].shape;
    paths.push_back(i == 0 ? path : fmt::format("{}.{}.npy", stem_of(path), i));
    std::vector<std::int64_t> dims = {shape.rows};
    if (shape.cols != 1) dims.push_back(shape.cols);
    write_gradient(paths.back(), inputs[i].values, dims);
  }
  return paths;
}

bool names_machines(const rt::ProgramInfo& info) {
  for (std::size_t i = 0; i < info.exprs->num_nodes(); ++i) {
    if (info.exprs->node(HostExprId(i)).op == HostOp::MachineRanks) return true;
  }
  return false;
}

std::vector<std::string> commands_of(const std::string& path, const VerifyOptions& options,
                                     const rt::ProgramInfo& info,
                                     const verify::Counterexample& counterexample,
                                     const std::vector<std::string>& inputs) {
  const std::string& plan = counterexample.plan;
  std::string start =
      (plan.empty() ? "cinch run " : "cinch sync ") + quoted(options.program.program);
  for (const std::string& binding : options.program.bindings) {
    start += " --set " + quoted(binding);
  }
  if (options.program.states == codegen::StateUpdate::InPlace) start += " --states in-place";
  if (!plan.empty()) start += " --plan " + plan;
  if (counterexample.are_ranks && plan.empty()) {
    start += " --ranks";
    const std::uint32_t on_each = machine_ranks_of(inputs.size());
    if (on_each > 0 && names_machines(info)) start += fmt::format(" --machine-ranks {}", on_each);
  }
  start += " --input";
  if (counterexample.order.empty()) {
    for (const std::string& input : inputs) start += " " + quoted(input);
  } else {
    for (std::size_t i : counterexample.order) start += " " + quoted(inputs[i]);
  }
  start += fmt::format(" --seed {} --step {}", counterexample.seed, counterexample.step);
  std::vector<std::string> commands;
  const std::vector<std::string>& runs = counterexample.arguments;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string command = start;
    if (!runs[i].empty()) command += " " + runs[i];
    if (runs.size() > 1) {
      command +=
          fmt::format(" --payload {0}.{1}.bin --output {0}.{1}.out.npy", quoted(stem_of(path)), i);
    } else {
      if (options.execution.device != "cpu") command += " --device " + options.execution.device;
      command += fmt::format(" --output {}.out.npy", quoted(stem_of(path)));
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace

CounterexampleFiles write_counterexample(const std::string& path, const VerifyOptions& options,
                                         const rt::ProgramInfo& info,
                                         const verify::Finding& finding,
                                         const verify::Counterexample& counterexample) {
  CounterexampleFiles files;
  files.inputs = write_inputs(path, counterexample.inputs);
  files.commands = commands_of(path, options, info, counterexample, files.inputs);
  files.description = stem_of(path) + ".json";
  json parameters = json::object();
  for (const rt::ConstantInfo& constant : info.constants) {
    parameters[constant.name] = constant.value;
  }
  for (const rt::ParamInfo& param : info.params) parameters[param.name] = param.default_value;
  const json description = {{"program", options.program.program},
                            {"law", finding.law},
                            {"figure", finding.figure},
                            {"bound", finding.bound},
                            {"detail", finding.detail},
                            {"seed", counterexample.seed},
                            {"step", counterexample.step},
                            {"parameters", parameters},
                            {"inputs", files.inputs},
                            {"shows", counterexample.shows},
                            {"commands", files.commands}};
  write_file(files.description, description.dump(2) + "\n");
  return files;
}

}  // namespace cinch::driver
