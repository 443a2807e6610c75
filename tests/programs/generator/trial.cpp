// Bodies of trial.h: the interpreter runs each size once, the runners are compared with that.
#include "tests/programs/generator/trial.h"

#include <fmt/format.h>

#include <functional>

#include "codegen/emulator/driver.h"
#include "codegen/jit/compile_program.h"
#include "runtime/core/check.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gpu_list.h"
#include "tests/programs/harness/kernel_run.h"
#include "tests/programs/harness/oracle.h"

namespace cinch::testing {
namespace {

using Gradients = std::vector<std::vector<float>>;

// One size: its gradients and expected results.
struct Expectation {
  Size size;
  rt::SessionOptions options;
  Gradients gradients;
  std::vector<StepResult> steps;
};

rt::SessionOptions session_options(const Size& size) {
  rt::SessionOptions options;
  options.rows = size.num_elems;
  options.seed = 11;
  options.tensor = 3;
  options.threads = 1;
  options.poison_memory = true;
  return options;
}

std::vector<Expectation> expectations(const Compiled& compiled, const rt::ProgramImage& image,
                                      const TrialOptions& options, TrialResult& result) {
  std::vector<Expectation> all;
  for (const Size& size : options.sizes) {
    Expectation one{size, session_options(size), {}, {}};
    Oracle oracle(compiled.oracle, image, one.options);
    for (std::uint64_t step = 0; step < options.num_steps; ++step) {
      // A gradient that is not finite comes first, when nothing has been computed yet.
      const bool is_bad = size.data == DataKind::NaN || size.data == DataKind::Infinity;
      const DataKind kind = is_bad && step > 0 ? DataKind::Normal : size.data;
      one.gradients.push_back(make_gradient(kind, size.num_elems, 17 * step + 5));
      if (size.num_elems == 0) continue;
      one.steps.push_back(oracle.step(one.gradients.back(), step));
      ++result.num_steps_done;
      result.num_steps_failed += one.steps.back().encode_error.has_value();
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string place(const Expectation& one, std::uint64_t step, const std::string& target) {
  return fmt::format("{} elements, {} data, step {}, {}", one.size.num_elems,
                     data_kind_name(one.size.data), step, target);
}

// A tensor without elements runs nothing, and its payload is a header, whatever the program says.
std::string compare_step(const Expectation& one, std::uint64_t step, const StepResult& found) {
  if (one.size.num_elems != 0) return compare(one.steps[step], found);
  return found.encode_error || found.decode_error ? "an error without elements" : "";
}

std::string run_sessions(const Loaded& loaded, const std::vector<Expectation>& all,
                         std::uint64_t seed, bool one_thread) {
  for (const Expectation& one : all) {
    rt::SessionOptions options = one.options;
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    options.threads = one_thread ? 1 : 1 + static_cast<std::uint32_t>(seed >> 33) % 7;
    options.groups_per_task = (seed >> 40) % 3;
    auto session = rt::Session::open(loaded, options);
    if (!session) return "open: " + session.error().message;
    for (std::uint64_t step = 0; step < one.gradients.size(); ++step) {
      const std::string difference =
          compare_step(one, step, run_step(*session, one.gradients[step], step));
      if (difference.empty()) continue;
      return fmt::format("{}, {} threads, {} groups per task: {}",
                         place(one, step, loaded->image().target), options.threads,
                         options.groups_per_task, difference);
    }
  }
  return {};
}

std::string run_on_gpu(const Compiled& compiled, const std::vector<Expectation>& all,
                       std::uint64_t seed) {
  const auto image =
      codegen::make_image(compiled.kernels, {codegen::TargetKind::Cuda, codegen::kEmulatedArch});
  if (!image) return image.error().message;
  emulator::GpuOptions gpu;
  gpu.schedule_seed = seed;
  const auto device = rt::GpuDevice::open(emulator::start_driver(gpu));
  if (!device) return device.error().message;
  const auto program = rt::GpuProgram::load(*device, *image);
  if (!program) return program.error().message;
  for (const Expectation& one : all) {
    std::string error;
    rt::GpuTuning tuning;
    if (seed % 2 != 0) tuning.one_launch_elements = tuning.fold_elements = 0;
    const auto list = GpuList::open(*program, {one.options}, error, tuning);
    if (!list) return "open: " + error;
    for (std::uint64_t step = 0; step < one.gradients.size(); ++step) {
      const StepResult found = list->step({one.gradients[step]}, step)[0];
      const std::string difference = compare_step(one, step, found);
      if (difference.empty()) continue;
      return place(one, step, "emulated GPU") + ": " + difference +
             (found.encode_error ? "\n" + found.encode_error->message : "");
    }
  }
  return {};
}

std::string run_levels(const Compiled& compiled, const std::vector<Expectation>& all,
                       std::uint64_t seed, bool lowest_only) {
  std::vector<std::string> levels = architectures().present;
  if (seed % 3 == 0) levels.front() += kQuickly;
  for (const std::string& arch : levels) {
    const auto loaded = load_for(compiled.kernels, arch);
    if (!loaded) return loaded.error();
    std::string difference = run_sessions(*loaded, all, seed++, false);
    if (!difference.empty() || lowest_only) return difference;
  }
  return {};
}

// Compiled once more, if there are states.
std::string run_in_place(const ProgramFile& file, const std::vector<Expectation>& all,
                         std::uint64_t seed) {
  const auto compiled = compile(file, codegen::StateUpdate::InPlace);
  if (!compiled) return compiled.error();
  if (compiled->kernels.info.states.empty()) return {};
  const auto machine = load_on_machine(compiled->kernels, seed);
  return machine ? run_sessions(*machine, all, seed, true) : machine.error().message;
}

void try_runner(Runner runner, const ProgramFile& file, const Compiled& compiled,
                const Loaded& machine, const std::vector<Expectation>& all, std::uint64_t seed,
                TrialResult& result) {
  switch (runner) {
    case Runner::Machine:
      result.kind = "machine";
      result.text = run_sessions(machine, all, seed, true);
      break;
    case Runner::InPlace:
      result.kind = "in-place";
      result.text = run_in_place(file, all, seed);
      break;
    case Runner::Lowest:
    case Runner::Levels:
      result.kind = "cpu";
      result.text = run_levels(compiled, all, seed, runner == Runner::Lowest);
      break;
    case Runner::Gpu:
      result.kind = "gpu";
      result.text = run_on_gpu(compiled, all, seed);
      break;
  }
  if (result.text.empty()) result.kind.clear();
}

// The message of a program that the checker rejects begins with its place; anything else is a bug
// of ours.
TrialResult not_compiled(const std::string& name, const std::string& message) {
  TrialResult result;
  result.kind = message.starts_with(name + ".cinch:") ? "refused" : "internal";
  result.text = message;
  return result;
}

}  // namespace

TrialResult try_program(const std::string& name, const std::string& text,
                        const TrialOptions& options) {
  const auto file = make_program(name, text);
  if (!file) return {"refused", "directives"};
  const auto compiled = compile(*file);
  if (!compiled) return not_compiled(name, compiled.error());
  const auto machine = load_on_machine(compiled->kernels, options.seed);
  if (!machine) return {"internal", machine.error().message};
  TrialResult result;
  try {
    const auto all = expectations(*compiled, (*machine)->image(), options, result);
    for (const Runner runner : options.runners) {
      try_runner(runner, *file, *compiled, *machine, all, options.seed, result);
      if (!result.agrees()) break;
    }
  } catch (const InternalError& error) {
    result.kind = "internal";
    result.text = error.what();
  }
  return result;
}

}  // namespace cinch::testing
