#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/driver/process/files.h"
#include "compiler/driver/ranks/sync_rank.h"
#include "compiler/driver/target.h"
#include "runtime/call/parameters.h"
#include "runtime/planner/policy.h"
#include "runtime/planner/ready_profile.h"
#include "runtime/sync/states/checkpoint.h"

namespace cinch::driver {
namespace {

// Stands for no program: gradients are sent uncompressed.
constexpr const char* kNoProgram = "none";

// Loads for the CPU even if ranks compute on a GPU (SyncDevices): plans are made from it.
Program load_program(const ProgramOptions& of, ExecutionOptions execution) {
  FrontEnd front_end;
  const std::string device = std::exchange(execution.device, "cpu");
  std::optional<rt::ProgramImage> image = find_image(of, execution);
  if (image && device != "cpu") {
    throw UsageError("--device {}: takes a program, not {}, which was compiled", device,
                     of.program);
  }
  if (!image) {
    const codegen::Target target = find_target(execution, true);
    return value_or_throw(rt::LoadedProgram::load(compile_program(front_end, of, target)));
  }
  if (of.is_carrier) {
    if (image->carrier != nullptr)
      return value_or_throw(rt::LoadedProgram::load(rt::ProgramImage(*image->carrier)));
    throw CommandError(ExitCode::AtFault,
                       "{} was compiled without what carries its sums, {}: take "
                       "--plan allgather, or compile it again",
                       of.program, image->info.carrier.text);
  }
  for (const sema::Binding& binding : service::parse_bindings(of.bindings)) {
    rt::ParameterValues values(image->info);
    value_or_throw(values.set(binding.name, binding.value), "--set");
    std::ranges::find(image->info.params, binding.name, &rt::ParamInfo::name)->default_value =
        binding.value;
  }
  return value_or_throw(rt::LoadedProgram::load(std::move(*image)));
}

// If a rule names no program, the command's program with the command's values.
ProgramOptions program_of(const SyncCommandOptions& options, const rt::PolicyCodec& codec) {
  ProgramOptions program = options.program;
  if (!codec.program.empty()) {
    program.program = codec.program;
    program.bindings.clear();
  }
  for (const auto& [name, value] : codec.values) {
    program.bindings.push_back(fmt::format("{}={}", name, value));
  }
  return program;
}

bool has_rank(const std::string& name) {
  return name.find("%r") != std::string::npos;
}

rt::NpyArray read_array(const SyncCommandOptions& options, const std::string& path) {
  rt::NpyArray array = read_gradient(path, options.dtype);
  return options.repeat_to_bytes > 0 ? repeat_to(array, options.repeat_to_bytes) : array;
}

RankTensors read_folder(const SyncCommandOptions& options, const std::string& folder) {
  if (options.repeat_to_bytes > 0) {
    throw UsageError("--repeat-to takes a single gradient, not a folder");
  }
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator next(folder, error), end; !error && next != end;
       next.increment(error)) {
    if (next->path().extension() == ".npy") files.push_back(next->path());
  }
  if (error) throw CommandError(ExitCode::AtFault, folder + ": " + error.message());
  if (files.empty()) throw CommandError(ExitCode::AtFault, folder + ": no .npy files in it");
  std::ranges::sort(files);
  RankTensors tensors;
  tensors.is_folder = true;
  for (const std::filesystem::path& file : files) {
    // Nobody named this file: reading a pipe would wait for a writer, a device might never end.
    if (!std::filesystem::is_regular_file(file, error)) {
      throw CommandError(ExitCode::AtFault, file.string() + ": not a regular file");
    }
    tensors.names.push_back(file.stem().string());
    tensors.arrays.push_back(read_array(options, file.string()));
  }
  return tensors;
}

// Without an input: different numbers on every rank.
RankTensors make_up_tensors(const std::string& profile, std::uint32_t rank) {
  constexpr std::size_t kShift = 104729;  // a prime
  RankTensors tensors;
  tensors.is_folder = true;
  for (const rt::ReadyTensor& tensor : read_profile(profile).tensors) {
    std::vector<float> values = bench::made_up_gradient(tensor.num_elems);
    if (!values.empty()) {
      std::ranges::rotate(
          values, values.begin() + static_cast<std::ptrdiff_t>(rank * kShift % values.size()));
    }
    rt::NpyArray& array = tensors.arrays.emplace_back();
    array.shape = shape_of(tensor);
    array.bytes.resize(4 * values.size());
    if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    tensors.names.push_back(tensor.name);
  }
  return tensors;
}

}  // namespace

rt::ReadyProfile read_profile(const std::string& path) {
  return value_or_throw(rt::parse_profile(path, read_text_file(path)));
}

std::vector<std::int64_t> shape_of(const rt::ReadyTensor& tensor) {
  if (!tensor.shape.empty()) return tensor.shape;
  if (tensor.num_elems < rt::kSmallElements) return {tensor.num_elems};
  auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(tensor.num_elems)));
  while (tensor.num_elems % rows != 0) --rows;
  return {rows, tensor.num_elems / rows};
}

std::vector<double> order_by_profile(const SyncCommandOptions& options, RankTensors& tensors) {
  RankTensors ordered;
  ordered.is_folder = tensors.is_folder;
  std::vector<double> ready;
  std::map<std::string_view, std::size_t> left;
  for (std::size_t i = 0; i < tensors.names.size(); ++i) left.emplace(tensors.names[i], i);
  for (const rt::ReadyTensor& of : read_profile(options.profile).tensors) {
    const auto found = left.find(of.name);
    if (found == left.end()) {
      throw CommandError(ExitCode::AtFault, "{}: the input has no tensor {}", options.profile,
                         of.name);
    }
    rt::NpyArray& array = tensors.arrays[found->second];
    if (array.num_elems() != of.num_elems) {
      throw CommandError(ExitCode::AtFault, "{}: {} has {} elements, the input {}", options.profile,
                         of.name, of.num_elems, array.num_elems());
    }
    ordered.names.push_back(of.name);
    ordered.arrays.push_back(std::move(array));
    ready.push_back(of.ready_seconds);
    left.erase(found);
  }
  if (!left.empty()) {
    const std::string_view name = left.begin()->first;
    throw CommandError(ExitCode::AtFault, "{}: it does not say when {} is ready", options.profile,
                       name);
  }
  tensors = std::move(ordered);
  return ready;
}

std::string of_rank(std::string name, std::uint32_t rank) {
  for (auto at = name.find("%r"); at != std::string::npos; at = name.find("%r", at)) {
    name.replace(at, 2, std::to_string(rank));
  }
  return name;
}

std::string input_of(const SyncCommandOptions& options, std::uint32_t rank) {
  return options.inputs.size() > 1 ? options.inputs.at(rank) : of_rank(options.inputs[0], rank);
}

std::uint32_t num_input_ranks(const SyncCommandOptions& options) {
  if (options.inputs.empty()) return 1;
  if (options.inputs.size() > 1 || !has_rank(options.inputs[0])) {
    return static_cast<std::uint32_t>(options.inputs.size());
  }
  std::error_code ignored;  // whoever reads the file reports the error
  std::uint32_t num = 1;
  while (num < kMaxRanks && std::filesystem::exists(input_of(options, num), ignored)) ++num;
  return num;
}

RankTensors read_tensors(const SyncCommandOptions& options, std::uint32_t rank) {
  if (options.inputs.empty()) {
    if (!options.profile.empty()) return make_up_tensors(options.profile, rank);
    throw UsageError("--input is required, or --profile");
  }
  const std::string input = input_of(options, rank);
  // A file that cannot be examined cannot be read either, which is reported below
  std::error_code ignored;
  if (std::filesystem::is_directory(input, ignored)) return read_folder(options, input);
  RankTensors tensors;
  tensors.names = {"gradient"};
  tensors.arrays.push_back(read_array(options, input));
  return tensors;
}

void check_same_tensors(const RankTensors& first, const RankTensors& other,
                        const std::string& name) {
  if (first.names != other.names) {
    throw CommandError(ExitCode::AtFault, name + ": other tensors than the first rank has");
  }
  for (std::size_t i = 0; i < first.arrays.size(); ++i) {
    if (first.arrays[i].shape == other.arrays[i].shape) continue;
    throw CommandError(ExitCode::AtFault, "{}: another shape than the first rank's {}", name,
                       first.names[i]);
  }
}

SyncSubject assign_programs(const SyncCommandOptions& options, const RankTensors& tensors) {
  std::vector<rt::PolicyTensor> named;
  named.reserve(tensors.names.size());
  for (std::size_t i = 0; i < tensors.names.size(); ++i) {
    named.push_back({tensors.names[i], tensors.arrays[i].shape});
  }
  const rt::Policy policy =
      !options.policy.empty()
          ? value_or_throw(rt::parse_policy(read_text_file(options.policy)), options.policy)
      : tensors.is_folder ? rt::usual_policy()
                          : rt::Policy{{rt::PolicyRule{}}};
  const rt::PolicyResult result = rt::apply_policy(policy, named);
  SyncSubject subject;
  subject.off = result.off;
  std::vector<std::uint32_t> codecs;
  for (const rt::PolicyCodec& codec : result.codecs) {
    const ProgramOptions program = program_of(options, codec);
    const bool is_exact = program.program == kNoProgram;
    codecs.push_back(is_exact ? rt::kDense : static_cast<std::uint32_t>(subject.programs.size()));
    if (is_exact) continue;
    add_program(program, options.execution, subject);
  }
  for (const rt::PolicyResult::Sent& sent : result.sent) {
    const std::uint32_t codec = sent.codec == rt::kDense ? rt::kDense : codecs[sent.codec];
    const Shape shape = shape_of(tensors.arrays[sent.tensor], true);
    subject.tensors.push_back(
        {tensors.names[sent.tensor], shape.rows, shape.cols, codec, sent.priority});
    subject.sent.push_back(sent.tensor);
    if (rt::has_routes(policy)) subject.route_of.push_back(sent.route);
  }
  if (rt::has_routes(policy)) subject.routes = result.routes;
  return subject;
}

SyncSubject assign_by_plan_file(const SyncCommandOptions& options, const rt::PlanFile& file,
                                const RankTensors& tensors) {
  SyncSubject subject;
  for (const rt::PlanFile::Program& each : file.programs) {
    ProgramOptions program = options.program;
    program.program = each.program;
    add_program(program, options.execution, subject);
  }
  std::map<std::string_view, std::uint32_t> codecs;
  for (const rt::PlanFile::Tensor& tensor : file.tensors) {
    codecs.emplace(tensor.name, tensor.program);
  }
  for (std::uint32_t i = 0; i < tensors.names.size(); ++i) {
    // A tensor that the file does not know is told as a difference.
    const auto found = codecs.find(tensors.names[i]);
    const Shape shape = shape_of(tensors.arrays[i], true);
    subject.tensors.push_back({tensors.names[i], shape.rows, shape.cols,
                               found == codecs.end() ? rt::kDense : found->second});
    subject.sent.push_back(i);
  }
  return subject;
}

void add_program(const ProgramOptions& program, const ExecutionOptions& execution,
                 SyncSubject& subject) {
  subject.programs.push_back(load_program(program, execution));
  subject.sources.push_back(program);
}

void add_carriers(const ExecutionOptions& execution, SyncSubject& subject) {
  const std::size_t num_programs = subject.programs.size();
  subject.carriers.assign(num_programs, rt::kDense);
  for (std::size_t i = 0; i < num_programs; ++i) {
    if (subject.programs[i]->info().carrier.kind != rt::CarrierKind::Program) continue;
    ProgramOptions source = subject.sources[i];
    source.is_carrier = true;
    subject.carriers[i] = static_cast<std::uint32_t>(subject.programs.size());
    add_program(source, execution, subject);
  }
}

void write_updates(const std::string& path, const SyncSubject& subject, const RankTensors& tensors,
                   const std::vector<std::vector<float>>& updates) {
  if (!tensors.is_folder) {
    return write_gradient(path, updates.at(0), tensors.arrays[0].shape);
  }
  // Names of a profile may lead anywhere.
  for (const std::uint32_t tensor : subject.sent) {
    if (tensors.names[tensor].find('/') == std::string::npos) continue;
    throw CommandError(ExitCode::AtFault, "{}: the tensor {} has no name of a file in it", path,
                       tensors.names[tensor]);
  }
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw CommandError(ExitCode::AtFault, path + ": " + error.message());
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const std::uint32_t tensor = subject.sent[i];
    write_gradient(path + "/" + tensors.names[tensor] + ".npy", updates[i],
                   tensors.arrays[tensor].shape);
  }
}

std::vector<std::vector<std::uint8_t>> read_saved_states(const SyncCommandOptions& options) {
  std::vector<std::vector<std::uint8_t>> saved;
  if (options.state_in.empty()) return saved;
  const std::string first = of_rank(options.state_in, 0);
  saved.push_back(value_or_throw(rt::read_checkpoint_file(first)));
  const std::uint32_t world = value_or_throw(rt::read_checkpoint(saved[0]), first).world;
  if (!has_rank(options.state_in)) return saved;
  for (std::uint32_t rank = 1; rank < world; ++rank) {
    const std::string name = of_rank(options.state_in, rank);
    saved.push_back(value_or_throw(rt::read_checkpoint_file(name)));
    value_or_throw(rt::read_checkpoint(saved.back()), name);
  }
  return saved;
}

void write_saved_states(const SyncCommandOptions& options, std::uint32_t rank,
                        std::span<const std::uint8_t> states) {
  if (!options.state_out.empty()) write_file(of_rank(options.state_out, rank), states);
}

void check_state_names(const SyncCommandOptions& options, std::uint32_t world) {
  if (world == 1 || options.state_out.empty() || has_rank(options.state_out)) return;
  throw UsageError("--state-out {}: {} ranks have a file each; %r in its name is the rank",
                   options.state_out, world);
}

std::vector<rt::ConstTensorView> views_of(const SyncSubject& subject, const RankTensors& tensors) {
  std::vector<rt::ConstTensorView> views;
  views.reserve(subject.sent.size());
  for (const std::uint32_t tensor : subject.sent) views.push_back(view_of(tensors.arrays[tensor]));
  return views;
}

rt::SyncDevice SyncDevices::open(int ordinal) {
  const auto device = open_gpu(execution_, ordinal);
  const codegen::Target target{codegen::TargetKind::Cuda, device->arch()};
  const auto load = [&](ProgramOptions program) {
    FrontEnd front_end;
    program.is_ahead_of_time = true;  // its speed is measured
    return value_or_throw(
        rt::GpuProgram::load(device, compile_program(front_end, program, target)));
  };
  rt::SyncDevice made;
  for (const ProgramOptions& program : programs_) made.programs.push_back(load(program));
  ProgramOptions any;  // only the services that every image holds are used
  any.program = "fp16";
  made.plain = programs_.empty() ? load(any) : made.programs[0];
  if (device->driver().allocates_apart) made.turns = &turns_;
  return made;
}

std::optional<rt::SyncDevice> SyncDevices::of(std::uint32_t rank) {
  if (!is_gpu(execution_)) return std::nullopt;
  if (opened_.empty()) opened_[0] = open(0);
  const rt::GpuDevice& device = *opened_[0].plain->device();
  int count = 0;
  value_or_throw(device.status(device.driver().device_count(&count), "counting devices"));
  const int ordinal = static_cast<int>(rank % static_cast<std::uint32_t>(count));
  if (!opened_.contains(ordinal)) opened_[ordinal] = open(ordinal);
  return opened_[ordinal];
}

}  // namespace cinch::driver
