#include "compiler/driver/library/library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "codegen/aot/library.h"
#include "codegen/aot/texts.h"
#include "codegen/emit/cpu.h"
#include "codegen/jit/nvrtc.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/process/interrupt.h"
#include "compiler/driver/process/progress.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/target.h"
#include "compiler/driver/version.h"
#include "compiler/service/compile.h"

namespace cinch::driver {
namespace {

namespace fs = std::filesystem;
using codegen::LibraryTarget;
using codegen::TargetKind;

[[noreturn]] void no_target(const std::string& text) {
  throw CommandError(
      ExitCode::Usage,
      fmt::format("no target '{}': a library takes cpu (levels 2 to 4 of x86-64), {}, "
                  "cuda:ptx, and cuda: with {}",
                  text, fmt::join(codegen::cpu_archs(), ", "), cuda_archs_text()));
}

LibraryTarget gpu_target(const std::string& arch, bool is_ptx) {
  return {{TargetKind::Cuda, arch}, is_ptx, service::tuned_cuda_options(arch).block_warps};
}

std::vector<LibraryTarget> parse_library_target(const std::string& text) {
  std::vector<LibraryTarget> targets;
  if (text == "cpu") {
    for (const codegen::CpuArch& arch : codegen::kCpuArchs) {
      if (arch.is_included) targets.push_back({{TargetKind::Cpu, arch.name}});
    }
    return targets;
  }
  if (text == "cuda:ptx" || text == "ptx") return {gpu_target(codegen::kPtxArch, true)};
  const std::string name = text.substr(text.find(':') + 1);
  const std::vector<std::string> levels = codegen::cpu_archs();
  if (std::ranges::find(levels, name) != levels.end() && !text.starts_with("cuda:"))
    return {{{TargetKind::Cpu, name}}};
  const bool is_gpu = is_cuda_arch(name) || name == codegen::kEmulatedArch;
  if (!is_gpu || text.starts_with("cpu:")) no_target(text);
  return {gpu_target(name, false)};
}

// Each target once; CPU levels from lowest to highest.
std::vector<LibraryTarget> library_targets(std::vector<std::string> names) {
  if (names.empty()) names = {"cpu"};
  std::vector<LibraryTarget> targets;
  for (const std::string& name : names) {
    for (LibraryTarget& target : parse_library_target(name)) {
      const auto is_same = [&](const LibraryTarget& t) {
        return t.target.arch == target.target.arch && t.is_ptx == target.is_ptx;
      };
      if (std::ranges::none_of(targets, is_same)) targets.push_back(std::move(target));
    }
  }
  const auto place = [](const LibraryTarget& t) {
    return std::ranges::find_if(
               codegen::kCpuArchs,
               [&](const codegen::CpuArch& arch) { return arch.name == t.target.arch; }) -
           std::begin(codegen::kCpuArchs);
  };
  std::ranges::stable_sort(targets, {}, place);
  return targets;
}

// A path in the syntax of make.
std::string in_rule(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == '\\') text += '\\';
    if (c == '$') text += '$';
    text += c;
  }
  return text;
}

// NAME.d, for make, Ninja and CMake: a changed file causes the libraries to be rebuilt.
std::string dependencies(const std::string& name, const std::string& output,
                         const std::set<std::string>& read) {
  const fs::path folder = fs::absolute(output).lexically_normal();
  std::string text;
  for (const char* suffix : {".a", ".so"})
    text += in_rule((folder / ("lib" + name + suffix)).string()) + (text.empty() ? " " : ":");
  for (const std::string& file : read) text += " \\\n " + in_rule(file);
  return text + "\n";
}

// Writes all files or none: into a temporary folder next to their places, then renames them.
class FileSet {
 public:
  explicit FileSet(fs::path folder) : folder_(std::move(folder)) {
    std::error_code code;
    fs::create_directories(folder_, code);
    if (code) give_up(folder_.string(), code);
    staged_ = folder_ / fmt::format(".cinch-build-{}", ::getpid());
    fs::create_directory(staged_, code);
    if (code) give_up(folder_.string(), code);
  }
  ~FileSet() {
    std::error_code code;
    fs::remove_all(staged_, code);
  }
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  void add(const codegen::NamedBytes& file) {
    write_file((staged_ / file.name).string(), file.bytes);
    names_.push_back(file.name);
  }
  void put_in_place() const {
    std::error_code code;
    for (const std::string& name : names_) {
      if (fs::is_directory(folder_ / name)) code = std::make_error_code(std::errc::is_a_directory);
      if (code) give_up((folder_ / name).string(), code);
    }
    for (const std::string& name : names_) {
      fs::rename(staged_ / name, folder_ / name, code);
      if (code) give_up((folder_ / name).string(), code);
    }
  }

 private:
  [[noreturn]] static void give_up(const std::string& what, const std::error_code& code) {
    throw CommandError(ExitCode::AtFault, what + ": " + code.message());
  }
  fs::path folder_, staged_;
  std::vector<std::string> names_;
};

std::string size_text(std::size_t bytes) {
  constexpr double kMega = 1e6, kKilo = 1e3;
  const auto size = static_cast<double>(bytes);
  return size >= kMega ? fmt::format("{:.1f} MB", size / kMega)
                       : fmt::format("{:.1f} kB", size / kKilo);
}

void write_library(const codegen::LibraryRequest& request, LibraryFrontEnds& programs,
                   const std::string& output) {
  codegen::Library library = value_or_throw(codegen::make_library(request, programs));
  std::vector<codegen::NamedBytes>& files = library.files;
  codegen::LibraryText text{request.name, kVersion, {}};
  for (const codegen::LibraryProgram& each : library.programs)
    text.compressors.push_back({each.name, &each.kernels.info});
  for (codegen::NamedBytes& file : codegen::make_headers(text)) files.push_back(std::move(file));
  const std::string report = library_report(request, library).dump(2) + "\n";
  files.push_back({request.name + ".json", {report.begin(), report.end()}});
  const std::string rule = dependencies(request.name, output, programs.files());
  files.push_back({request.name + ".d", {rule.begin(), rule.end()}});
  {
    const Cancellable until_all_are_there;  // delays signals: all files or none
    FileSet set(output);
    for (const codegen::NamedBytes& file : files) set.add(file);
    set.put_in_place();
  }
  end_if_interrupted();
  for (const codegen::NamedBytes& file : files)
    print_text("{:>10}  {}\n", size_text(file.bytes.size()),
               (fs::path(output) / file.name).string());
}

}  // namespace

ExitCode build_library(const BuildOptions& options) {
  if (options.output.empty()) {
    throw CommandError(ExitCode::Usage, "a library needs --output DIR, the folder that it goes to");
  }
  if (options.execution.cpu != "native" || options.execution.device != "cpu")
    throw CommandError(ExitCode::Usage,
                       "a library is built for what --target says, not --cpu or --device");
  if (options.no_passes) throw CommandError(ExitCode::Usage, "--no-passes goes with --emit=ir");
  codegen::LibraryRequest request;
  request.targets = library_targets(options.targets);
  request.name = options.name;
  request.made_by = kVersion;
  if (!request.name.empty())
    require_name(codegen::why_no_library_name(request.name), "--name", request.name);
  Progress progress("parts compiled");
  request.progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); };
  LibraryFrontEnds programs(options, [&] { progress.clear(); });
  if (request.name.empty()) {
    if (programs.count() > 1)
      throw CommandError(ExitCode::Usage, "a library of several compressors needs --name LIB");
    request.name = programs.name_of_first();
    require_name(codegen::why_no_library_name(request.name), "a library of the name", request.name);
  }
  write_library(request, programs, options.output);
  return ExitCode::Done;
}

}  // namespace cinch::driver
