// Names of devices and processors, and images made for them.

#include <algorithm>
#include <charconv>

#include "codegen/emulator/driver.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/jit/nvrtc.h"
#include "codegen/tuning/gpu_limits.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile_cache.h"
#include "dsl/diag/render.h"
#include "runtime/image/image_file.h"
#include "runtime/module/cpu_module.h"
#include "runtime/tuning/tuning.h"

namespace cinch::driver {
void warn_of_settings() {
  static bool is_told = false;
  if (is_told || output_settings().is_quiet) return;
  is_told = true;
  if (const rt::UserTuning& tuning = rt::user_tuning(); tuning.problem)
    print_aside("warning: {}; the built-in tuning numbers are used\n", tuning.problem->message);
  const rt::CacheSettings cache = service::cache_settings();
  if (cache.is_on && !cache.problem.empty())
    print_aside("warning: {}; the cache keeps up to {} bytes\n", cache.problem, cache.max_bytes);
}

bool is_gpu(const ExecutionOptions& options) {
  return options.device != "cpu";
}

std::shared_ptr<rt::GpuDevice> open_gpu(const ExecutionOptions& options, int ordinal) {
  const std::string place = "device '" + options.device + "'";
  if (options.device != "emulated") {
    const rt::GpuDriver* driver = value_or_throw(rt::open_cuda_driver(), place);
    return value_or_throw(rt::GpuDevice::open(*driver, ordinal), place);
  }
  emulator::GpuOptions gpu;
  gpu.schedule_seed = options.schedule_seed;
  return value_or_throw(rt::GpuDevice::open(emulator::start_driver(gpu)), place);
}

codegen::Target find_target(const ExecutionOptions& options, bool must_run) {
  warn_of_settings();
  if (options.device == "emulated") return {codegen::TargetKind::Cuda, codegen::kEmulatedArch};
  if (options.device == "cuda") {
    return {codegen::TargetKind::Cuda, open_gpu(options)->arch()};
  }
  const std::string arch = options.cpu == "native" ? std::string(rt::host_cpu_arch()) : options.cpu;
  if (must_run && !rt::host_supports(arch)) {
    throw CommandError(ExitCode::Unavailable, "this machine cannot run code for " + arch +
                                                  "; the highest it runs is " +
                                                  std::string(rt::host_cpu_arch()));
  }
  return {codegen::TargetKind::Cpu, arch};
}

std::string cuda_archs_text() {
  return fmt::format(
      "sm_{} or a newer one (with `a` from sm_90 on, with `f` from sm_100 on: for it alone, or for "
      "its family)",
      fmt::join(codegen::known_gpu_archs(), ", sm_"));
}

bool is_cuda_arch(std::string_view arch) {
  constexpr int kFirst = 75, kFirstOfItsOwn = 90, kFirstOfFamily = 100, kLast = 999;
  if (!arch.starts_with("sm_") || arch.starts_with("sm_0")) return false;
  arch.remove_prefix(3);
  int number = 0;
  const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), number);
  const std::string_view letter(end, static_cast<std::size_t>(arch.data() + arch.size() - end));
  if (error != std::errc() || number < kFirst || number > kLast) return false;
  // NVRTC is asked only about numbers between known ones, as it takes time to open.
  const std::span<const int> known = codegen::known_gpu_archs();
  const bool is_known = number > known.back() || std::ranges::binary_search(known, number);
  if (!is_known && std::ranges::count(codegen::nvrtc_report().archs, number) == 0) return false;
  return letter.empty() || (letter == "a" && number >= kFirstOfItsOwn) ||
         (letter == "f" && number >= kFirstOfFamily);
}

namespace {

codegen::Target cuda_target(const std::string& arch, const std::string& text) {
  if (arch != codegen::kPtx && arch != codegen::kEmulatedArch && !is_cuda_arch(arch)) {
    throw UsageError(
        "no target '{}': there is no architecture '{}'; --target takes cuda:{}, and cuda: with {}",
        text, arch, codegen::kPtx, cuda_archs_text());
  }
  return {codegen::TargetKind::Cuda, arch};
}

}  // namespace

codegen::Target parse_target(const std::string& text) {
  warn_of_settings();
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string arch = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (text == codegen::kEmulatedArch) return {codegen::TargetKind::Cuda, text};
  if (text == "cuda") return cuda_target("sm_80", text);
  if (kind == "cuda" || kind.starts_with("sm_"))
    return cuda_target(kind == "cuda" ? arch : text, text);
  const std::string cpu = kind != "cpu" ? text : arch.empty() ? "native" : arch;
  const std::vector<std::string> known = known_cpus();
  if (std::ranges::find(known, cpu) == known.end()) {
    throw UsageError("no target '{}': --target takes cuda:sm_90 and such, cpu, {}", text,
                     fmt::join(known, ", "));
  }
  return {codegen::TargetKind::Cpu, cpu == "native" ? std::string(rt::host_cpu_arch()) : cpu};
}

std::vector<std::string> known_cpus() {
  std::vector<std::string> names = codegen::cpu_archs();
  names.insert(names.begin(), "native");
  return names;
}

std::vector<std::string> known_targets() {
  std::vector<std::string> names = known_cpus();
  names.insert(names.end(), {"sm_80", "sm_90", codegen::kEmulatedArch});
  return names;
}

std::optional<rt::ProgramImage> find_image(const ProgramOptions& options,
                                           const ExecutionOptions& execution) {
  if (!service::is_image_file(options.program)) return std::nullopt;
  rt::ProgramImage image = value_or_throw(rt::load_image(options.program), options.program);
  warn_of_settings();
  if (is_gpu(execution)) return image;
  const std::string wanted = "cpu:" + find_target(execution, true).arch;
  if (execution.cpu != "native" && image.target != wanted) {
    throw UsageError("--cpu " + execution.cpu + ": " + options.program + " was compiled for " +
                     image.target);
  }
  return image;
}

// Diagnostics on the standard streams.

std::string diagnostics_text(const dsl::DiagSink& sink, const dsl::SourceSet& sources) {
  return dsl::render_text(sink.all(), sources, {colour_on_errors()});
}

void print_diagnostics(const dsl::DiagSink& sink, const dsl::SourceSet& sources,
                       DiagnosticsFormat format) {
  const ProgressPause pause;
  if (format != DiagnosticsFormat::Text) note_printed_result();
  switch (format) {
    case DiagnosticsFormat::Text:
      std::fputs(diagnostics_text(sink, sources).c_str(), stderr);
      return;
    case DiagnosticsFormat::Json:
      fmt::print("{}\n", dsl::render_json(sink.all(), sources));
      return;
    case DiagnosticsFormat::Sarif:
      fmt::print("{}\n", dsl::render_sarif(sink.all(), sources, kVersion));
      return;
  }
}

dsl::DiagSink wanted_diagnostics(const dsl::DiagSink& all) {
  if (!output_settings().is_quiet) return all;
  dsl::DiagSink errors;
  for (const dsl::Diagnostic& found : all.all()) {
    if (found.severity() == dsl::Severity::Error) errors.add(found);
  }
  return errors;
}

FrontEnd::FrontEnd() {
  show = [](const dsl::DiagSink& diagnostics, const dsl::SourceSet& files) {
    if (output_settings().is_json) keep_diagnostics(dsl::render_json(diagnostics.all(), files));
    print_diagnostics(wanted_diagnostics(diagnostics), files);
  };
}

rt::ProgramImage compile_program(service::FrontEnd& front_end, const ProgramOptions& program,
                                 const codegen::Target& target) {
  // Programs of the library are given by the paths of their files.
  const std::string name = program.program.substr(program.program.rfind('/') + 1);
  const Progress progress("compiling " + name);
  return service::make_program_image(front_end, program, target);
}

namespace {

// Without the blanks around it.
std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace

std::vector<std::string> split_programs(const std::vector<std::string>& words,
                                        const std::string& option) {
  std::vector<std::string> programs;
  for (const std::string& word : words) {
    std::string program;
    int depth = 0;
    for (const char c : word) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c == ',' && depth == 0) {
        programs.push_back(trimmed(program));
        program.clear();
      } else {
        program += c;
      }
    }
    programs.push_back(trimmed(program));
  }
  std::erase(programs, "");
  if (programs.empty()) throw UsageError("{} names no program", option);
  return programs;
}

std::vector<std::string> programs_or_library(const std::vector<std::string>& given) {
  if (!given.empty()) return given;
  std::vector<std::string> programs;
  for (const LibraryProgram& program : library_programs()) {
    programs.push_back(program.path + ":" + program.name);
  }
  return programs;
}

}  // namespace cinch::driver
