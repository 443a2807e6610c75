// Programs of the C API: compiled, loaded, saved and described.
#include <filesystem>

#include "runtime/c_api/compiler_door.h"
#include "runtime/c_api/handles.h"
#include "runtime/call/parameters.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/core/params.h"
#include "runtime/image/image_file.h"
#include "runtime/image/validate.h"
#include "runtime/module/cpu_module.h"
#include "runtime/module/shared_object.h"

cinch_program::cinch_program() = default;
cinch_program::~cinch_program() = default;

namespace cinch::c_api {
namespace {

constexpr std::string_view kCpuPrefix = "cpu:", kGpuPrefix = "cuda:";

// As cinch_program_info has it.
std::string carrier_text(const rt::SumCarrier& carrier) {
  switch (carrier.kind) {
    case rt::CarrierKind::Itself:
      return "itself";
    case rt::CarrierKind::Exact:
      return "exact";
    case rt::CarrierKind::Program:
      return carrier.text + (carrier.shares_draws ? ", shared draws" : "");
    case rt::CarrierKind::None:
      return "none: " + carrier.text;
  }
  return "none";
}

std::unique_ptr<cinch_program> described(const rt::ProgramImage& image) {
  auto program = std::make_unique<cinch_program>();
  program->cpu = image.target;
  if (program->cpu.starts_with(kCpuPrefix)) program->cpu.erase(0, kCpuPrefix.size());
  for (const rt::ParamInfo& param : image.info.params) {
    (param.is_input ? program->inputs : program->parameters)
        .push_back(program->parameter_types.size());
    program->parameter_types.emplace_back(dtype_name(param.dtype));
    program->parameter_ranges.push_back(param.range ? rt::range_text(param.dtype, *param.range)
                                                    : std::string());
    program->parameter_words.push_back(rt::words_text(param));
  }
  for (const rt::StateInfo& state : image.info.states) {
    // Arrays come behind numbers.
    if (state.is_input) {
      program->inputs.push_back(image.info.params.size() + program->state_types.size());
    } else {
      program->states.push_back(program->state_types.size());
    }
    program->state_types.emplace_back(dtype_name(state.type.dtype));
  }
  program->carrier_text = carrier_text(image.info.carrier);
  return program;
}

CallStatus load(rt::Result<rt::ProgramImage> image, cinch_program** program,
                rt::FindBetterCode find_better = {}) {
  CINCH_TRY(image);
  return give_program(std::move(*image), program, std::move(find_better));
}

// What carries sums is saved with the program; null if nothing else does.
CallResult<std::shared_ptr<const rt::ProgramImage>> carrier_to_save(const cinch_program& program) {
  const rt::ProgramImage& image = program.image();
  if (image.carrier != nullptr || image.info.carrier.kind != rt::CarrierKind::Program ||
      program.job == nullptr) {
    return image.carrier;
  }
  const auto made = TRY(program.job->run({.is_ahead_of_time = true, .is_carrier = true}));
  auto carrier = TRY(rt::read_image(made.bytes));
  return std::make_shared<const rt::ProgramImage>(std::move(carrier));
}

// A saved image is loaded many times, so its code is compiled with all optimisations. The present
// code is saved if that fails, or if texts have changed since: they are another program then.
CallStatus save(const cinch_program& program, const char* path) {
  std::optional<rt::ProgramImage> better;
  if (program.find_better) better = program.find_better();
  if (program.find_better && !better) {
    (void)program.job->run({.is_ahead_of_time = true});
    better = program.find_better();
  }
  if (better) better->info.params = program.image().info.params;  // the values that were bound
  const auto carrier = TRY(carrier_to_save(program));
  rt::ProgramImage image = program.image();
  if (better) {
    better->info.carrier = image.info.carrier;  // its text has the values that were bound
    image = std::move(*better);
  }
  image.carrier = carrier;
  return done(rt::save_image(image, path));
}

CallStatus check_texts(const char* const* texts, std::size_t count, const std::string& what) {
  if (count > 0 && texts == nullptr) return invalid(what + " is null");
  for (std::size_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr) {
      return invalid(what + "[" + std::to_string(i) + "] is null");
    }
  }
  return rt::Ok{};
}

CallStatus check_compile_options(const cinch_compile_options& options) {
  if (options.program == nullptr && options.text == nullptr) {
    return invalid("neither program nor text is given");
  }
  // What is shorter and still too long the compiler rejects with a diagnostic.
  constexpr std::size_t kMostTextBytes = std::size_t{1} << 30;
  if (options.text != nullptr && options.text_size > kMostTextBytes) {
    return invalid("text_size is " + std::to_string(options.text_size) + ": no text is so long");
  }
  CINCH_TRY(check_texts(options.bindings, options.num_bindings, "bindings"));
  CINCH_TRY(check_texts(options.include_folders, options.num_include_folders, "include_folders"));
  if (options.states != CINCH_STATES_SECOND_BUFFER && options.states != CINCH_STATES_IN_PLACE) {
    return invalid("states is " + std::to_string(static_cast<int>(options.states)) +
                   ", which is not a value of cinch_states");
  }
  return rt::Ok{};
}

CallResult<CompileTarget> compile_target(const cinch_compile_options& options) {
  if (options.device == CINCH_CPU) {
    // A level that this machine runs.
    const std::string highest(rt::host_cpu_arch());
    if (options.cpu == nullptr) return CompileTarget{highest, {}};
    if (rt::host_supports(options.cpu)) return CompileTarget{options.cpu, {}};
    return fail(CINCH_UNAVAILABLE, "this machine cannot run code for '" + std::string(options.cpu) +
                                       "'; the highest it runs is " + highest);
  }
  if (options.device != CINCH_CUDA) {
    return fail(CINCH_UNAVAILABLE, "device " + std::to_string(options.device));
  }
  // Tuning numbers are part of code for a GPU.
  CINCH_TRY(check_named_tuning());
  if (options.arch != nullptr && options.arch[0] != '\0') return CompileTarget{{}, options.arch};
  const auto device = TRY(open_gpu(options.device_number));
  return CompileTarget{{}, device->arch()};
}

// "path", or "path:name" of a compressor in a library.
struct PlaceOfProgram {
  std::string path, name;
};

CallStatus make_carrier(const cinch_program& program, cinch_program** to) {
  const rt::ProgramImage& image = program.image();
  if (image.carrier != nullptr) return give_program(rt::ProgramImage(*image.carrier), to);
  if (program.job == nullptr) {
    return fail(CINCH_UNAVAILABLE, image.info.name + " carries sums by " + image.info.carrier.text +
                                       ", which was not saved with it: take the plan allgather, or "
                                       "compile it again");
  }
  auto made = TRY(program.job->run({.is_carrier = true}));
  return load(rt::read_image(made.bytes), to, program.job->finder(std::move(made.better)));
}

}  // namespace

CallStatus give_program(rt::Result<std::shared_ptr<const rt::LoadedProgram>> loaded,
                        cinch_program** to) {
  CINCH_TRY(loaded);
  auto program = described((*loaded)->image());
  program->loaded = std::move(*loaded);
  *to = program.release();
  return rt::Ok{};
}

CallStatus give_program(rt::ProgramImage image, cinch_program** to,
                        rt::FindBetterCode find_better) {
  if (image.target.starts_with(kGpuPrefix)) {
    // GPU code is loaded when a session on a GPU opens.
    CINCH_TRY(done(rt::validate_image(image)));
    auto program = described(image);
    program->gpu_image = std::move(image);
    *to = program.release();
  } else {
    CINCH_TRY(give_program(rt::LoadedProgram::load(std::move(image), find_better), to));
  }
  (*to)->find_better = std::move(find_better);
  return rt::Ok{};
}

CallResult<const cinch_program*> carrier_of(const cinch_program& program) {
  const std::lock_guard lock(program.carrier_mutex);
  if (program.carrier == nullptr) {
    cinch_program* made = nullptr;
    CINCH_TRY(make_carrier(program, &made));
    program.carrier.reset(made);
  }
  return program.carrier.get();
}

CallResult<const cinch_program*> cpu_code_of(const cinch_program& program, bool is_carrier) {
  const std::lock_guard lock(program.carrier_mutex);
  auto& kept = is_carrier ? program.carrier_on_cpus : program.on_cpus;
  if (kept != nullptr) return kept.get();
  if (program.job == nullptr) {
    return fail(CINCH_UNAVAILABLE, program.image().info.name +
                                       " was loaded as code for a GPU, and the plan encodes "
                                       "tensors on CPUs: compile it again");
  }
  auto made = TRY(program.job->run({.is_carrier = is_carrier, .for_cpus = true}));
  auto image = TRY(rt::read_image(made.bytes));
  if (!is_carrier) image.info.params = program.image().info.params;  // the values that were bound
  cinch_program* loaded = nullptr;
  CINCH_TRY(give_program(std::move(image), &loaded, program.job->finder(std::move(made.better))));
  kept.reset(loaded);
  return loaded;
}

CallResult<std::shared_ptr<rt::GpuDevice>> open_gpu(std::int32_t device_number) {
  const auto driver = TRY(gpu_driver());
  if (device_number < 0) {
    return fail(CINCH_UNAVAILABLE, "device " + std::to_string(device_number));
  }
  // Programs of one rank are for one device.
  static std::mutex mutex;
  static auto* const kOpened =
      new std::map<std::pair<const rt::GpuDriver*, std::int32_t>, std::weak_ptr<rt::GpuDevice>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<rt::GpuDevice>& known = (*kOpened)[{driver, device_number}];
  if (auto device = known.lock()) return device;
  auto device = TRY(rt::GpuDevice::open(*driver, device_number));
  known = device;
  return std::move(device);
}

CallResult<std::shared_ptr<const rt::GpuProgram>> load_on_gpu(const cinch_program& program,
                                                              std::int32_t device_number) {
  if (program.loaded != nullptr) {
    return invalid("a program for CPUs, not for a GPU");
  }
  const std::lock_guard lock(program.mutex);
  std::weak_ptr<const rt::GpuProgram>& known = program.on_gpus[device_number];
  if (auto loaded = known.lock()) return loaded;
  const auto device = TRY(open_gpu(device_number));
  auto loaded = TRY(rt::GpuProgram::load(device, program.image(), program.find_better));
  known = loaded;
  return std::move(loaded);
}

}  // namespace cinch::c_api

using namespace cinch::c_api;
namespace rt = cinch::rt;

uint32_t cinch_abi_version(void) {
  return CINCH_ABI_VERSION;
}

const char* cinch_version(void) {
  return CINCH_VERSION;
}

cinch_status cinch_programs_list(const char* compiler, void* data, size_t* size,
                                 cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    const auto list = TRY(list_programs(compiler));
    return copy_out(list, "names of programs", data, size);
  });
}

cinch_status cinch_program_compile(const cinch_compile_options* options, cinch_program** program,
                                   cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (program == nullptr) return invalid("program is null");
    const auto given =
        TRY(read_struct(options, offsetof(cinch_compile_options, states), "options"));
    CINCH_TRY(check_compile_options(given));
    auto target = TRY(compile_target(given));
    auto job = std::make_unique<CompileJob>(given, std::move(target));
    auto image = TRY(job->run({}));
    CINCH_TRY(load(rt::read_image(image.bytes), program, job->finder(std::move(image.better))));
    (*program)->job = std::move(job);
    (*program)->warnings = std::move(image.warnings);
    return rt::Ok{};
  });
}

cinch_status cinch_program_load(const char* path, cinch_program** program, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (path == nullptr || program == nullptr) {
      return invalid("path or program is null");
    }
    PlaceOfProgram place{path, {}};
    const std::size_t colon = place.path.rfind(':');
    if (colon != std::string::npos && !std::filesystem::exists(place.path))
      place = {place.path.substr(0, colon), place.path.substr(colon + 1)};
    if (!place.name.empty() || rt::is_elf_file(place.path))
      return load_from_library(place.path, place.name, program);
    return load(rt::load_image(path), program);
  });
}

cinch_status cinch_program_load_bytes(const void* bytes, size_t size, cinch_program** program,
                                      cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (bytes == nullptr || program == nullptr) {
      return invalid("bytes or program is null");
    }
    return load(rt::read_image({static_cast<const std::uint8_t*>(bytes), size}), program);
  });
}

cinch_status cinch_program_save(const cinch_program* program, const char* path,
                                cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (program == nullptr || path == nullptr) {
      return invalid("program or path is null");
    }
    if (program->image().binary.empty()) {
      return fail(CINCH_UNAVAILABLE,
                  "a program of a library has its code there: it is not saved as an image");
    }
    return save(*program, path);
  });
}

void cinch_program_release(cinch_program* program) {
  delete program;
}

cinch_status cinch_program_get_info(const cinch_program* program, cinch_program_info* info,
                                    cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (program == nullptr) return invalid("program is null");
    const rt::ProgramImage& image = program->image();
    cinch_program_info value{};
    value.name = image.info.name.c_str();
    value.doc = image.info.doc.c_str();
    value.cpu = program->cpu.c_str();
    value.fingerprint[0] = image.fingerprint[0];
    value.fingerprint[1] = image.fingerprint[1];
    value.num_parameters = program->parameters.size();
    value.num_states = program->states.size();
    value.num_inputs = program->inputs.size();
    value.is_matrix = image.info.is_matrix ? 1 : 0;
    value.has_finish = image.info.has_finish ? 1 : 0;
    // By rt::Aggregation.
    constexpr cinch_aggregation kAggregations[] = {CINCH_GATHER, CINCH_SUM_PROVED,
                                                   CINCH_SUM_TO_TEST};
    value.aggregation = kAggregations[static_cast<std::size_t>(image.info.aggregation)];
    value.carrier = program->carrier_text.c_str();
    value.warnings = program->warnings.c_str();
    value.is_local = image.info.is_local ? 1 : 0;
    return write_struct(value, info, "info");
  });
}

cinch_status cinch_program_get_parameter(const cinch_program* program, size_t index,
                                         cinch_parameter_info* info, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (program == nullptr) return invalid("program is null");
    const auto& params = program->image().info.params;
    CINCH_TRY(check_index(index, program->parameters.size(), "parameter"));
    index = program->parameters[index];
    cinch_parameter_info value{};
    value.name = params[index].name.c_str();
    value.type = program->parameter_types[index].c_str();
    value.range = program->parameter_ranges[index].c_str();
    value.default_value = params[index].default_value;
    value.words = program->parameter_words[index].c_str();
    return write_struct(value, info, "info");
  });
}

cinch_status cinch_program_parameter_value(const cinch_program* program, const char* parameter,
                                           const char* text, double* value, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (program == nullptr) return invalid("program is null");
    if (parameter == nullptr) return invalid("parameter is null");
    if (text == nullptr || value == nullptr) {
      return invalid(text == nullptr ? "text is null" : "value is null");
    }
    const auto found = TRY(rt::find_parameter(program->image().info.params, parameter));
    *value = TRY(rt::parameter_value(*found, text));
    return rt::Ok{};
  });
}

cinch_status cinch_program_get_input(const cinch_program* program, size_t index,
                                     cinch_input_info* info, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (program == nullptr) return invalid("program is null");
    CINCH_TRY(check_index(index, program->inputs.size(), "input"));
    const auto& params = program->image().info.params;
    const std::size_t place = program->inputs[index];
    cinch_input_info value{};
    value.range = "";
    if (place < params.size()) {
      value.name = params[place].name.c_str();
      value.type = program->parameter_types[place].c_str();
      value.range = program->parameter_ranges[place].c_str();
    } else {
      value.name = program->image().info.states[place - params.size()].name.c_str();
      value.type = program->state_types[place - params.size()].c_str();
      value.is_array = 1;
    }
    return write_struct(value, info, "info");
  });
}

cinch_status cinch_program_get_state(const cinch_program* program, size_t index,
                                     cinch_state_info* info, cinch_error* error) {
  return guarded(error, [&]() -> CallStatus {
    if (program == nullptr) return invalid("program is null");
    const auto& states = program->image().info.states;
    CINCH_TRY(check_index(index, program->states.size(), "state"));
    index = program->states[index];
    cinch_state_info value{};
    value.name = states[index].name.c_str();
    value.type = program->state_types[index].c_str();
    return write_struct(value, info, "info");
  });
}
