// Codecs over sessions on a device; programs that are prepared for them. CPUs use the caller's
// memory.

#include <algorithm>
#include <chrono>
#include <mutex>
#include <sstream>

#include "compiler/bench/tuning_search.h"
#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/target.h"
#include "runtime/call/joins.h"
#include "runtime/call/parameters.h"
#include "runtime/call/state_file.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/collective/rank_meeting.h"
#include "runtime/planner/speeds.h"

namespace cinch::driver {
namespace {

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
  return rt::fingerprint_text(words);
}

void CodecFactory::require_payloads(const char* call) const {
  if (!info().has_sync) return;
  throw CommandError(ExitCode::AtFault,
                     "{} has no {}: it synchronises by a `sync` body, which `cinch run "
                     "--ranks` runs",
                     info().name, call);
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

InputSource::InputSource(const rt::ProgramInfo& info, const RunOptions& options, Shape shape)
    : info_(info), first_step_(options.step), makes_up_(options.makes_up_inputs) {
  for (const std::string& word : options.given) take(word, shape);
  // Weights that are no gradients of the laws' families, the same everywhere.
  if (makes_up_ && std::ranges::any_of(info.states, &rt::StateInfo::is_input))
    made_up_ = bench::made_up_gradient(shape.num_elems());
}

void InputSource::take(const std::string& word, Shape shape) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const auto param = std::ranges::find(info_.params, name, &rt::ParamInfo::name);
  const bool is_number = param != info_.params.end() && param->is_input;
  const bool is_array = std::ranges::any_of(info_.states, [&](const rt::StateInfo& state) {
    return state.is_input && state.name == name;
  });
  if (equals == std::string::npos || (!is_number && !is_array)) {
    std::vector<std::string> names;
    for (const rt::ParamInfo& each : info_.params) {
      if (each.is_input) names.push_back(each.name + "=0.1");
    }
    for (const rt::StateInfo& each : info_.states) {
      if (each.is_input) names.push_back(each.name + "=FILE.npy");
    }
    throw UsageError(
        "--with {}: {} {}", word, info_.name,
        names.empty() ? "takes only a gradient" : fmt::format("takes {}", fmt::join(names, " ")));
  }
  std::istringstream values(word.substr(equals + 1));
  for (std::string value; std::getline(values, value, ',');) {
    if (is_number) {
      const double number = value_or_throw(rt::parameter_value(*param, value), "--with");
      value_or_throw(rt::check_parameter(*param, number), "--with");
      numbers_[name].push_back(number);
      continue;
    }
    const rt::NpyArray read = read_gradient(value, "");
    if (read.num_elems() != shape.num_elems()) {
      throw CommandError(ExitCode::AtFault, "--with {}: {} has {} elements, the gradient has {}",
                         name, value, read.num_elems(), shape.num_elems());
    }
    arrays_[name].push_back(to_f32(view_of(read)));
  }
}

void InputSource::refuse_missing(const std::string& name, const char* example) const {
  throw UsageError("{} takes the input {}: give it with --with {}={}", info_.name, name, name,
                   example);
}

namespace {

template <typename T>
const T& of_step(const std::vector<T>& values, std::uint64_t place) {
  return values[std::min<std::size_t>(place, values.size() - 1)];
}

}  // namespace

double InputSource::number(const rt::ParamInfo& param, std::uint64_t step) const {
  const auto at = numbers_.find(param.name);
  if (at != numbers_.end()) return of_step(at->second, step - std::min(step, first_step_));
  if (!makes_up_) refuse_missing(param.name, "0.1");
  return param.default_value;
}

std::span<const float> InputSource::array(std::uint32_t state, std::uint64_t step) const {
  const std::string& name = info_.states[state].name;
  const auto at = arrays_.find(name);
  if (at != arrays_.end()) return of_step(at->second, step - std::min(step, first_step_));
  if (!makes_up_) refuse_missing(name, "FILE.npy");
  return made_up_;
}

void InputSource::set(interp::Inputs& inputs, std::uint64_t step) const {
  if (!info_.has_inputs()) return;
  inputs.params.clear();
  for (const rt::ParamInfo& param : info_.params) inputs.params.push_back(param.default_value);
  each(
      step,
      [&](const std::string& name, double value) {
        const auto at = std::ranges::find(info_.params, name, &rt::ParamInfo::name);
        inputs.params[static_cast<std::size_t>(at - info_.params.begin())] = value;
      },
      [&](std::uint32_t state, const std::string& /*name*/, std::span<const float> values) {
        inputs.states[state].bits = interp::from_floats(values).bits;
      });
}

// A codec over a session on a device. CPUs use the caller's memory. For a GPU gradients are copied
// there and payloads back; only the work in between is timed.

namespace {

// For a list of one tensor.
template <typename T>
T list_or_throw(rt::ListResult<T> result) {
  if (!result) throw_error(result.error().error);
  return std::move(*result);
}

// Device memory that grows on demand.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(rt::ComputeDevice& device) : device_(device) {}

  std::uint8_t* reserve(std::size_t size_bytes) {
    // Even 0 bytes need an address.
    size_bytes = std::max<std::size_t>(size_bytes, 16);
    if (size_bytes_ < size_bytes) {
      memory_ = {};
      memory_ = value_or_throw(device_.allocate({&size_bytes, 1}));
      size_bytes_ = size_bytes;
    }
    return memory_.pieces[0];
  }
  std::uint8_t* copy_in(std::span<const std::uint8_t> bytes) {
    std::uint8_t* const to = reserve(bytes.size());
    value_or_throw(device_.copy_in(to, bytes));
    value_or_throw(device_.wait());
    return to;
  }

 private:
  rt::ComputeDevice& device_;
  rt::MemoryPieces memory_;
  std::size_t size_bytes_ = 0;
};

std::span<std::uint8_t> bytes_of(std::span<float> values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size_bytes()};
}

class DeviceCodec : public Codec {
 public:
  DeviceCodec(std::unique_ptr<rt::ComputeDevice> device, const rt::ListOptions& options,
              Shape shape, InputSource inputs)
      : device_(std::move(device)),
        tensor_(*device_),
        other_(*device_),
        payload_(*device_),
        given_(*device_),
        inputs_(std::move(inputs)) {
    const rt::ListTensor tensor{shape.rows, shape.cols};
    list_ = list_or_throw(device_->open(0, options, {&tensor, 1}));
    if (!device_->is_host()) collect();
  }

  std::vector<std::uint8_t> encode(rt::ConstTensorView gradient, std::uint64_t step) override {
    give_inputs(step);
    const rt::ConstTensorView from = bring(gradient);
    rt::PayloadSlot slot;
    if (!device_->is_host()) {
      const auto bound = static_cast<std::size_t>(payload_bound(step));
      slot.room = {payload_.reserve(bound), bound};
    }
    run([&] { list_or_throw(list_->encode({step}, {&from, 1}, {&slot, 1})); });
    if (device_->is_host()) return {slot.bytes.begin(), slot.bytes.end()};
    std::vector<std::uint8_t> payload(static_cast<std::size_t>(collect().payload_bytes));
    fetch(payload, slot.room.data());
    return payload;
  }

  void decode(std::span<const std::uint8_t> payload, std::span<float> out,
              std::uint64_t step) override {
    if (!device_->is_host()) payload = {payload_.copy_in(payload), payload.size()};
    const rt::TensorView to = room_for(out);
    run([&] { list_or_throw(list_->decode({step}, {&payload, 1}, {&to, 1})); });
    take(to, out);
  }

  void finish(std::span<float> sum, std::uint64_t step) override {
    if (list_->info().has_finish) give_inputs(step);
    const rt::ConstTensorView view = bring(rt::ConstTensorView(sum));
    const std::span from(static_cast<float*>(const_cast<void*>(view.data)), sum.size());
    const rt::TensorView to = room_for(sum);
    run([&] { list_or_throw(list_->finish({step}, {&from, 1}, {&to, 1})); });
    take(to, sum);
  }

  void sync(rt::ConstTensorView gradient, std::span<float> update, std::uint64_t step,
            rt::RankExchange& ranks) override {
    std::optional<rt::RankTurn> turn;
    if (device_->turns() != nullptr) turn.emplace(ranks, *device_->turns());
    rt::RankExchange& others = turn ? *turn : ranks;
    give_inputs(step);
    const rt::ConstTensorView from = bring(gradient);
    const rt::TensorView to = room_for(update);
    run([&] { value_or_throw(list_->sync(0, from, to, step, others)); });
    take(to, update);
  }

  std::int64_t payload_bound(std::uint64_t step) override {
    return value_or_throw(list_->payload_bound(0, step));
  }
  void load_states(const std::string& path) override {
    const std::vector<std::uint8_t> file = value_or_throw(rt::read_state_file(path));
    value_or_throw(list_->set_states(0, file), path);
  }
  void save_states(const std::string& path) override {
    write_file(path, value_or_throw(list_->states_as_bytes(0), path));
  }
  std::vector<std::uint8_t> states_as_bytes() override {
    return value_or_throw(list_->states_as_bytes(0));
  }
  std::optional<double> device_ms() const override { return device_ms_; }

 private:
  // Makes a call. Work in this process can be cancelled by the user; work on a device is timed.
  template <typename Call>
  void run(const Call& call) {
    if (device_->is_host()) {
      const Cancellable scope;
      return call();
    }
    const auto start = std::chrono::steady_clock::now();
    call();
    value_or_throw(device_->wait());
    const auto end = std::chrono::steady_clock::now();
    device_ms_ = std::chrono::duration<double, std::milli>(end - start).count();
  }

  void give_inputs(std::uint64_t step) {
    inputs_.each(
        step,
        [&](const std::string& name, double value) {
          value_or_throw(list_->set_parameter(name, value));
        },
        [&](std::uint32_t /*state*/, const std::string& name, std::span<const float> values) {
          rt::ConstTensorView array(values);
          // The list copies it before the next one comes.
          if (!device_->is_host()) {
            const auto* const bytes = reinterpret_cast<const std::uint8_t*>(values.data());
            array.data = given_.copy_in({bytes, values.size_bytes()});
          }
          value_or_throw(list_->set_input(0, name, array));
          value_or_throw(device_->wait());
        });
  }

  rt::TensorOutcome collect() {
    rt::TensorOutcome outcome = value_or_throw(list_->collect()).at(0);
    value_or_throw(outcome.status);
    return outcome;
  }

  // The tensor in the device's memory, as f32 on a GPU.
  rt::ConstTensorView bring(rt::ConstTensorView tensor) {
    if (device_->is_host()) return tensor;
    std::vector<float> values = to_f32(tensor);
    return {tensor_.copy_in(bytes_of(values)), kF32, tensor.num_elems};
  }
  // Memory on the device for a result, which is then copied to `values`.
  rt::TensorView room_for(std::span<float> values) {
    rt::TensorView room(values);
    if (!device_->is_host()) room.data = other_.reserve(values.size_bytes());
    return room;
  }
  void take(const rt::TensorView& room, std::span<float> values) {
    if (device_->is_host()) return;
    collect();
    fetch(bytes_of(values), room.data);
  }
  void fetch(std::span<std::uint8_t> to, const void* from) {
    value_or_throw(device_->copy_out(to, from));
    value_or_throw(device_->wait());
  }

  std::unique_ptr<rt::ComputeDevice> device_;
  DeviceBuffer tensor_, other_, payload_, given_;
  InputSource inputs_;
  std::unique_ptr<rt::ListSession> list_;
  std::optional<double> device_ms_;
};

}  // namespace

std::unique_ptr<Codec> CodecFactory::open(Shape shape, std::uint32_t worker,
                                          std::uint32_t world) const {
  InputSource inputs(info(), options_, shape);
  if (interpreted_) return open_interpreter_codec(interpreted_, options_, shape, worker, world);
  parameters_of(info(), bindings_);
  rt::ListOptions options{.world = world,
                          .worker = worker,
                          .machine_ranks = options_.machine_ranks,
                          .seed = options_.seed};
  for (const auto& binding : bindings_)
    options.parameters.emplace_back(binding.name, service::value_of(binding, info()));
  std::unique_ptr<rt::ComputeDevice> device;
  if (on_gpu_) {
    // Ranks of one process use the device one at a time: an emulated device runs on one thread.
    static std::mutex turns;
    device = value_or_throw(rt::open_gpu_queue({.programs = {on_gpu_}, .turns = &turns}));
  } else {
    device = rt::open_cpu_device({{loaded_}, options_.execution.threads, Cancellable::flag()});
  }
  return std::make_unique<DeviceCodec>(std::move(device), options, shape, std::move(inputs));
}

}  // namespace cinch::driver
