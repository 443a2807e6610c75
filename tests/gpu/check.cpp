// gpu_check: sessions on a GPU against sessions on the CPU, bit for bit, from images alone: no
// compiler is linked or needed. For every program of a folder (NAME.gpu.image beside
// NAME.cpu.image, as prepare.py makes them): edge sizes alone and as one list, three element types,
// several seeds, steps with states between them, replays of a captured graph.
// Programs that synchronise: worlds of one rank and of more, which share the device.
//
//   gpu_check FOLDER [--device cuda|emulated] [--only NAME,…] [--except NAME,…] [--quick] [--huge]
//             [--processes N]
//
// --quick: few sizes and steps, for a run under compute-sanitizer or an emulator. --huge: one
// tensor of 2^31 + 5 elements through the programs whose memory allows it. --processes: so many
// at a time, each for one program; the CPU's side takes most of the time.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "runtime/gpu/session/session.h"
#include "runtime/image/image_file.h"
#include "runtime/session/session.h"
#include "tests/gpu/on_device.h"
#include "tests/programs/harness/gpu_list.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/rank_runs.h"

namespace cinch::testing {
namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path folder;
  std::string device = "cuda";
  std::vector<std::string> only, except;
  bool quick = false, huge = false;
  int processes = 1;
};

struct Programs {
  std::string name;
  std::shared_ptr<const rt::LoadedProgram> cpu;
  std::shared_ptr<const rt::GpuProgram> gpu;
};

std::vector<std::int64_t> edge_sizes(bool is_quick) {
  if (is_quick) return {0, 1, 33, 1025, 5000};
  return {0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 5000, 65535, 65537, 100003, (1 << 20) + 3};
}

rt::SessionOptions cpu_options(std::int64_t n, std::uint64_t seed, std::uint32_t number) {
  rt::SessionOptions options;
  options.rows = n;
  options.seed = seed;
  options.tensor = number;
  return options;
}

// A matrix program takes its gradient as rows; a vector program as one row of elements.
void shape(rt::SessionOptions& options, bool is_matrix) {
  if (!is_matrix || options.rows < 64) return;
  options.cols = 64;
  options.rows /= 64;
}

StepResult without_messages(StepResult result, bool is_empty) {
  for (auto* error : {&result.encode_error, &result.decode_error, &result.finish_error}) {
    if (*error) (*error)->message.clear();
  }
  if (is_empty) result.states.clear();
  return result;
}

// A list of tensors through both devices.
std::string check_list(const Programs& program, const std::vector<std::int64_t>& sizes,
                       std::uint64_t seed, std::uint64_t steps,
                       const std::optional<rt::GpuTuning>& tuning) {
  std::vector<rt::SessionOptions> options;
  std::vector<rt::Session> sessions;
  for (const std::int64_t n : sizes) {
    options.push_back(cpu_options(n, seed, static_cast<std::uint32_t>(options.size())));
    shape(options.back(), program.cpu->info().is_matrix);
    auto session = rt::Session::open(program.cpu, options.back());
    if (!session) return "CPU: " + session.error().message;
    sessions.push_back(std::move(*session));
  }
  std::string error;
  const auto list = GpuList::open(program.gpu, options, error, tuning);
  if (!list) return "GPU: " + error;
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::vector<std::vector<float>> gradients;
    for (const rt::SessionOptions& one : options) {
      const auto kind = kAllDataKinds[(step + gradients.size()) % std::size(kAllDataKinds)];
      gradients.push_back(make_gradient(kind, one.rows * one.cols, seed + 17 * step));
    }
    const std::vector<StepResult> found = list->step(gradients, step);
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      const bool is_empty = gradients[t].empty();
      const StepResult expected =
          without_messages(run_step(sessions[t], gradients[t], step), is_empty);
      const std::string difference = compare(expected, without_messages(found[t], is_empty));
      if (difference.empty()) continue;
      return fmt::format("{} elements, seed {}, step {}: {}", sizes[t], seed, step, difference);
    }
  }
  return {};
}

std::string check_type(const Programs& program, std::int64_t n, DType dtype) {
  rt::SessionOptions options = cpu_options(n, 3, 0);
  shape(options, program.cpu->info().is_matrix);
  return compare_types(program.cpu, program.gpu, options, dtype);
}

// A graph of encode and decode, replayed over steps.
std::string check_graph(const Programs& program, std::int64_t n, std::uint64_t steps,
                        const std::optional<rt::GpuTuning>& tuning) {
  rt::SessionOptions options = cpu_options(n, 3, 0);
  shape(options, program.cpu->info().is_matrix);
  auto cpu = value_or_throw(rt::Session::open(program.cpu, options), "CPU");
  rt::GpuSessionOptions on_gpu;
  on_gpu.seed = 3;
  on_gpu.tuning = tuning;
  on_gpu.tensors = {{options.rows, options.cols, 0, 0}};
  auto gpu = value_or_throw(rt::GpuSession::open(program.gpu, on_gpu), "GPU");
  const Stream stream(program.gpu->device());
  const auto elems = static_cast<std::size_t>(cpu.num_elems());
  Memory memory(program.gpu->device());
  std::vector<float> values = make_gradient(DataKind::Normal, cpu.num_elems(), 1);
  const rt::GpuAddress from = memory.hold(values.data(), 4 * elems);
  const rt::GpuAddress out = memory.hold(nullptr, 4 * elems);
  const std::int64_t bound = value_or_throw(gpu.payload_bound(0), "a payload");
  const rt::GpuPayload to{memory.hold(nullptr, static_cast<std::size_t>(bound)), bound};
  const auto call = [&] {
    ok_or_throw(gpu.encode({&from, 1}, {&to, 1}, 0, stream.get()), "encode");
    ok_or_throw(gpu.decode({&to, 1}, {&out, 1}, 0, stream.get()), "decode");
  };
  call();
  stream.wait();
  (void)value_or_throw(cpu.encode(values, 0), "CPU: encode");
  const Graph graph(stream, call);
  for (std::uint64_t step = 1; step < steps; ++step) {
    values = make_gradient(DataKind::Normal, cpu.num_elems(), step + 1);
    memory.write(from, values.data(), 4 * elems);
    ok_or_throw(gpu.prepare(rt::EntryKind::Encode, step, stream.get()), "encode");
    ok_or_throw(gpu.prepare(rt::EntryKind::Decode, step, stream.get()), "decode");
    graph.replay();
    const auto outcomes = value_or_throw(gpu.collect(stream.get()), "a replay");
    ok_or_throw(outcomes[0].status, fmt::format("replay of step {}", step));
    const auto expected = value_or_throw(cpu.encode(values, step), "CPU: encode");
    const std::vector<std::uint8_t> payload(expected.begin(), expected.end());
    if (memory.read(to.address, payload.size()) != payload) {
      return fmt::format("replay of step {}: payloads differ", step);
    }
    std::vector<float> decoded(elems);
    ok_or_throw(cpu.decode(payload, decoded, step), "CPU: decode");
    const std::vector<std::uint8_t> found = memory.read(out, 4 * elems);
    if (std::memcmp(found.data(), decoded.data(), found.size()) != 0) {
      return fmt::format("replay of step {}: decoded tensors differ", step);
    }
  }
  return {};
}

// Ranks that share the device; in the second step one has a gradient that is not finite.
std::string check_ranks(const Programs& program, std::int64_t n, std::uint32_t world,
                        const rt::GpuTuning& tuning) {
  RankCase one{.options = cpu_options(n, 3, 0), .gradients = {}};
  one.options.world = world;
  shape(one.options, program.cpu->info().is_matrix);
  for (std::uint64_t step = 0; step < 3; ++step) {
    auto& of_step = one.gradients.emplace_back();
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const bool is_bad = step == 1 && rank == world / 2;
      of_step.push_back(make_gradient(is_bad ? DataKind::NaN : DataKind::Normal,
                                      one.options.rows * one.options.cols, 31 * step + rank));
    }
  }
  const RankResults found = run_ranks_on_gpu(program.gpu, one, tuning);
  std::string difference = compare(run_ranks_on_cpu(program.cpu, one), found);
  if (difference.empty()) difference = find_disagreement(found);
  return difference.empty() ? "" : fmt::format("{} elements, {} ranks, {}", n, world, difference);
}

std::string check_huge(const Programs& program) {
  return check_list(program, {(std::int64_t{1} << 31) + 5}, 3, 1, {});
}

// Every size by many launches, with partials folded, and by one.
constexpr rt::GpuTuning kMany{.one_launch_elements = 0, .fold_elements = 0};
constexpr rt::GpuTuning kOne{.one_launch_elements = INT64_MAX};

std::string check_sync(const Programs& program, bool is_quick) {
  std::string error;
  std::uint32_t world = 0;
  for (const std::int64_t n : edge_sizes(is_quick)) {
    world = world % 4 + 1;
    for (const rt::GpuTuning& tuning : {kMany, kOne}) {
      if (error.empty()) error = check_ranks(program, n, world, tuning);
    }
  }
  return error;
}

std::string check_calls(const Programs& program, const Options& options) {
  const std::vector<std::int64_t> sizes = edge_sizes(options.quick);
  const std::uint64_t steps = options.quick ? 2 : 10;
  const std::uint64_t seeds = options.quick ? 1 : 3;
  std::string error;
  for (std::uint64_t seed = 1; seed <= seeds && error.empty(); ++seed) {
    error = check_list(program, sizes, seed, steps, kMany);
  }
  if (error.empty()) error = check_list(program, sizes, seeds + 1, 2, kOne);
  for (const std::int64_t n : sizes) {
    if (error.empty() && !options.quick) error = check_list(program, {n}, 7, 2, {});
  }
  for (const DType dtype : {kF16, kBF16}) {
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1025}, sizes.back()}) {
      if (error.empty()) error = check_type(program, n, dtype);
      if (!error.empty()) return fmt::format("{}: {}", dtype_name(dtype), error);
    }
  }
  for (const rt::GpuTuning& tuning : {kMany, kOne}) {
    if (error.empty()) error = check_graph(program, sizes.back(), steps, tuning);
  }
  return error;
}

std::string check(const Programs& program, const Options& options) {
  if (options.huge) return check_huge(program);
  std::string error;
  const rt::ProgramImage& image = program.gpu->image();
  const auto has = [&](rt::EntryKind kind) {
    return image.entries[static_cast<std::size_t>(kind)].present;
  };
  if (has(rt::EntryKind::Sync)) error = check_sync(program, options.quick);
  if (has(rt::EntryKind::Encode) && error.empty()) error = check_calls(program, options);
  return error;
}

std::optional<Options> parse(std::span<char* const> args) {
  Options options;
  for (std::size_t i = 1; i < args.size(); ++i) {
    const std::string_view arg = args[i];
    const bool has_value = i + 1 < args.size();
    if (arg == "--quick") {
      options.quick = true;
    } else if (arg == "--huge") {
      options.huge = true;
    } else if (arg == "--processes" && has_value) {
      options.processes = std::stoi(args[++i]);
    } else if (arg == "--device" && has_value) {
      options.device = args[++i];
    } else if (arg == "--only" && has_value) {
      options.only = comma_separated(args[++i]);
    } else if (arg == "--except" && has_value) {
      options.except = comma_separated(args[++i]);
    } else if (options.folder.empty() && !arg.starts_with("-")) {
      options.folder = arg;
    } else {
      return std::nullopt;
    }
  }
  if (options.folder.empty() || options.processes < 1) return std::nullopt;
  return options;
}

Programs load(const fs::path& gpu_image, const std::shared_ptr<const rt::GpuDevice>& device) {
  Programs programs;
  programs.name = gpu_image.stem().stem().string();
  programs.gpu = load_gpu_program(gpu_image, device);
  auto on_cpu = value_or_throw(
      rt::load_image(gpu_image.parent_path() / (programs.name + ".cpu.image")), programs.name);
  programs.cpu = value_or_throw(rt::LoadedProgram::load(std::move(on_cpu)), programs.name);
  return programs;
}

// A failure for reasons other than the program's bits is reported in the same way.
std::string check_image(const fs::path& image, const std::shared_ptr<const rt::GpuDevice>& device,
                        const Options& options) {
  try {
    return check(load(image, device), options);
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::vector<fs::path> wanted_images(const Options& options) {
  std::vector<fs::path> images;
  for (const fs::directory_entry& entry : fs::directory_iterator(options.folder)) {
    if (entry.path().string().ends_with(".gpu.image")) images.push_back(entry.path());
  }
  std::erase_if(images, [&](const fs::path& image) {
    const std::string name = image.stem().stem().string();
    const auto is_in = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, name) != names.end();
    };
    return (!options.only.empty() && !is_in(options.only)) || is_in(options.except);
  });
  std::ranges::sort(images);
  return images;
}

int run(const Options& options, std::span<const fs::path> images) {
  const auto device = open_device(options.device, std::size_t{1} << 32);
  fmt::print("{} ({})\n", device->name(), device->arch());
  int failed = 0, passed = 0;
  for (const fs::path& image : images) {
    const std::string error = check_image(image, device, options);
    fmt::print("{} {}{}\n", error.empty() ? "same bits" : "DIFFERS", image.stem().stem().string(),
               error.empty() ? "" : ": " + error);
    std::fflush(stdout);
    ++(error.empty() ? passed : failed);
  }
  fmt::print("{} programs the same, {} not\n", passed, failed);
  return failed > 0 || passed == 0 ? 1 : 0;
}

// A process for each program, so that a faulting kernel does not take the device away from the
// others. Each opens the device itself: no driver is open yet when they fork.
int run_apart(const Options& options, const std::vector<fs::path>& images) {
  int failed = 0, running = 0;
  const auto wait_for_one = [&] {
    int status = 0;
    if (wait(&status) < 0) throw std::runtime_error("a process got lost");
    --running;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
  };
  for (const fs::path& image : images) {
    if (running == options.processes) wait_for_one();
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no process could be started");
    if (child == 0) {
      const int code = run(options, {&image, 1});
      std::fflush(stdout);
      _exit(code);
    }
    ++running;
  }
  while (running > 0) wait_for_one();
  fmt::print("{} programs, {} not the same\n", images.size(), failed);
  return failed > 0 || images.empty() ? 1 : 0;
}

int run(const Options& options) {
  const std::vector<fs::path> images = wanted_images(options);
  return options.processes > 1 ? run_apart(options, images) : run(options, images);
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  const auto options = cinch::testing::parse({argv, static_cast<std::size_t>(argc)});
  if (!options) {
    fmt::print(stderr,
               "gpu_check FOLDER [--device cuda|emulated] [--only NAME,...] "
               "[--except NAME,...] [--quick] [--huge] [--processes N]\n");
    return 2;
  }
  try {
    return cinch::testing::run(*options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_check: {}\n", error.what());
    return 3;
  }
}
