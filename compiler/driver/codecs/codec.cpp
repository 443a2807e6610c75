// Prepares programs, and chooses what their codecs compute on.
#include "compiler/driver/codecs/codec.h"

#include <fmt/format.h>

#include <mutex>

#include "compiler/driver/front_end.h"
#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/process/interrupt.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile.h"
#include "runtime/call/joins.h"
#include "runtime/call/parameters.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/device/compute_device.h"
#include "runtime/image/image.h"

namespace cinch::driver {
namespace {

// Ranks of one process use the device one at a time: an emulated device runs on one thread.
std::mutex& device_turns() {
  static std::mutex one;
  return one;
}

// Throws CommandError for parameters or values that the program does not have.
rt::ParameterValues parameters_of(const rt::ProgramInfo& info,
                                  const std::vector<sema::Binding>& bindings) {
  rt::ParameterValues parameters(info);
  for (const sema::Binding& binding : bindings) {
    value_or_throw(parameters.set(binding.name, service::value_of(binding, info)), "--set");
  }
  return parameters;
}

}  // namespace

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
      ProgramOptions program = options.program;
      program.is_improved_later = true;
      image = compile_program(front_end, program, find_target(options.execution, true));
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
  const rt::ParameterValues parameters = parameters_of(info(), bindings_);
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
  parameters_of(info(), bindings_);
  rt::ListOptions options{.world = world, .worker = worker, .seed = options_.seed};
  for (const auto& binding : bindings_)
    options.parameters.emplace_back(binding.name, service::value_of(binding, info()));
  std::unique_ptr<rt::ComputeDevice> device;
  if (on_gpu_) {
    device = value_or_throw(rt::open_gpu_queue({.programs = {on_gpu_}, .turns = &device_turns()}));
  } else {
    device = rt::open_cpu_device({{loaded_}, options_.execution.threads, Cancellable::flag()});
  }
  return open_device_codec(std::move(device), options, shape);
}

}  // namespace cinch::driver
