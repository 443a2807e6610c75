#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "codegen/aot/library.h"
#include "codegen/emit/cpu.h"
#include "codegen/jit/nvrtc.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/target.h"
#include "compiler/ir/text/text.h"
#include "compiler/service/library_list.h"
#include "runtime/core/params.h"
#include "runtime/payload/payload.h"

namespace cinch::driver {
namespace {

namespace fs = std::filesystem;
using codegen::LibraryTarget;
using codegen::TargetKind;
using nlohmann::json;

// Throws CommandError(Usage) if `why` is not empty: `what` may not have the name, for this reason.
void require_name(const std::string& why, const std::string& what, const std::string& name) {
  if (!why.empty()) throw UsageError("{} '{}': {}", what, name, why);
}

std::vector<std::string> files_of(const dsl::SourceSet& sources) {
  std::vector<std::string> files;
  for (dsl::FileId id = 0; id < sources.num_files(); ++id) {
    std::error_code code;
    const fs::path path = fs::absolute(sources.find(id)->name(), code);
    if (!code && fs::is_regular_file(path, code)) files.push_back(path.lexically_normal().string());
  }
  return files;
}

// Turns the programs from text into kernels, several at a time.
class LibraryFrontEnds final : public codegen::LibraryPrograms {
 public:
  // `before_printing` is called before diagnostics go to standard error.
  LibraryFrontEnds(const BuildOptions& options, std::function<void()> before_printing)
      : before_printing_(std::move(before_printing)) {
    std::vector<std::string> texts = {options.program.program};
    texts.insert(texts.end(), options.more_files.begin(), options.more_files.end());
    programs_.resize(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      programs_[i].options = options.program;
      programs_[i].options.program = texts[i];
    }
  }

  std::size_t count() const override { return programs_.size(); }
  // Keeps exceptions and diagnostics for take().
  void prepare(std::size_t index) override {
    Program& program = programs_[index];
    if (std::exchange(program.is_prepared, true)) return;
    try {
      make(program);
    } catch (...) {
      program.failure = std::current_exception();
    }
  }

  // Shows the program's diagnostics. Throws ServiceError for a program with errors, and
  // CommandError(Usage) for a name that no compressor may have or that another one has.
  codegen::LibraryProgram take(std::size_t index) override {
    Program& program = programs_[index];
    const std::string& name = show(program);
    const std::string& text = program.options.program;
    const auto [at, is_new] = taken_.emplace(name, text);
    if (!is_new) {
      throw UsageError("two compressors of the name '{}': of {} and of {}", name, at->second, text);
    }
    files_.insert(program.files.begin(), program.files.end());
    return std::move(program.made);
  }

  // The name of a library's only program. Prepares and shows as take() does.
  std::string name_of_first() {
    prepare(0);
    return show(programs_[0]);
  }

  // Absolute paths of all files from which the taken programs were read, imports and headers too.
  const std::set<std::string>& files() const { return files_; }

 private:
  struct Program {
    ProgramOptions options;
    std::string diagnostics;
    std::exception_ptr failure;
    bool is_prepared = false;
    codegen::LibraryProgram made;
    std::vector<std::string> files;
  };

  static void make(Program& program) {
    FrontEnd front_end;
    front_end.show = [&](const dsl::DiagSink& sink, const dsl::SourceSet& sources) {
      program.diagnostics += diagnostics_text(wanted_diagnostics(sink), sources);
    };
    const auto kernels_of = [](FrontEnd& from, const ProgramOptions& options) {
      rt::StepLimit steps = service::step_limit(options);
      const ir::Program ir = service::make_ir(from, options, true, &steps);
      return service::make_kernels(ir, {options.states, &steps});
    };
    kir::KernelProgram kernels = kernels_of(front_end, program.options);
    program.files = files_of(front_end.sources);
    std::string name = kernels.info.name;
    const bool has_carrier = kernels.info.carrier.kind == rt::CarrierKind::Program;
    program.made = {std::move(name), std::move(kernels)};
    if (!has_carrier) return;
    FrontEnd of_carrier;
    of_carrier.show = [](const dsl::DiagSink&, const dsl::SourceSet&) {};  // it was shown
    ProgramOptions carrier = program.options;
    carrier.is_carrier = true;
    program.made.carrier = kernels_of(of_carrier, carrier);
  }

  // Returns the program's name. Throws as take() does.
  const std::string& show(Program& program) {
    const std::string text = std::exchange(program.diagnostics, {});
    if (!text.empty()) before_printing_();
    std::fputs(text.c_str(), stderr);
    if (program.failure) std::rethrow_exception(program.failure);
    const std::string& name = program.made.name;
    require_name(codegen::why_no_name(name), "compressor", name);
    return name;
  }

  std::vector<Program> programs_;
  std::function<void()> before_printing_;
  std::map<std::string, std::string> taken_;  // by name: the program with that name
  std::set<std::string> files_;
};

json parameters_of(const rt::ProgramInfo& info) {
  json list = json::array();
  for (const rt::ConstantInfo& c : info.constants)
    list.push_back({{"name", c.name}, {"value", c.value}, {"constant", true}});
  for (const rt::ParamInfo& p : info.params) {
    if (p.is_input) continue;
    list.push_back({{"name", p.name},
                    {"type", dtype_name(p.dtype)},
                    {"value", p.default_value},
                    {"constant", false},
                    {"range", p.range ? json(rt::range_text(p.dtype, *p.range)) : json()}});
  }
  return list;
}

json inputs_of(const rt::ProgramInfo& info) {
  json list = json::array();
  for (const rt::ParamInfo& p : info.params) {
    if (p.is_input)
      list.push_back({{"name", p.name},
                      {"type", dtype_name(p.dtype)},
                      {"range", p.range ? json(rt::range_text(p.dtype, *p.range)) : json()}});
  }
  for (const rt::StateInfo& s : info.states) {
    if (s.is_input)
      list.push_back({{"name", s.name}, {"type", ir::print_type(info, s.type)}, {"range", json()}});
  }
  return list;
}

json payload_of(rt::ProgramInfo& info) {
  json fields = json::array(), counts = json::array();
  for (const rt::FieldInfo& field : info.wire.fields) {
    fields.push_back({{"name", field.name},
                      {"type", ir::print_type(info, field.type)},
                      {"ascending", field.ascending},
                      {"packs", field.packing.empty() ? json() : json(field.packing)}});
  }
  for (const rt::CountInfo& count : info.wire.counts)
    counts.push_back({{"name", count.name}, {"bound", service::formula_text(info, count.bound)}});
  return {{"header_bytes", rt::kPayloadHeaderBytes},
          {"field_alignment", rt::kPayloadFieldAlignment},
          {"bound", service::formula_text(info, service::payload_bound(info))},
          {"counts", counts},
          {"fields", fields}};
}

json compressor_of(const std::string& name, rt::ProgramInfo& info) {
  const std::array<std::uint64_t, 2> print = rt::fingerprint(info);
  json report = {{"name", name},
                 {"doc", info.doc},
                 {"fingerprint", fmt::format("{:016x}{:016x}", print[1], print[0])},
                 {"matrix", info.is_matrix},
                 {"parameters", parameters_of(info)},
                 {"states", json::array()}};
  if (info.has_inputs()) report["inputs"] = inputs_of(info);
  for (const rt::StateInfo& s : info.states)
    if (!s.is_input)
      report["states"].push_back({{"name", s.name}, {"type", ir::print_type(info, s.type)}});
  if (info.has_sync) {
    report["aggregation"] = "sync";
    return report;
  }
  report["payload"] = payload_of(info);
  report["aggregation"] = info.aggregation == rt::Aggregation::SumProved   ? "sum"
                          : info.aggregation == rt::Aggregation::SumToTest ? "sum, to test"
                                                                           : "gather";
  return report;
}

json library_report(const codegen::LibraryRequest& request, codegen::Library& library) {
  json compressors = json::array(), targets = json::array();
  for (codegen::LibraryProgram& each : library.programs)
    compressors.push_back(compressor_of(each.name, each.kernels.info));
  for (const codegen::LibraryTarget& each : request.targets) {
    const bool is_gpu = each.target.kind == codegen::TargetKind::Cuda;
    targets.push_back((is_gpu ? "cuda:" : "cpu:") + each.target.arch + (each.is_ptx ? " ptx" : ""));
  }
  return {{"library", request.name},
          {"cinch", kVersion},
          {"targets", targets},
          {"compressors", compressors}};
}

[[noreturn]] void no_target(const std::string& text) {
  throw UsageError(
      "no target '{}': a library takes cpu (levels 2 to 4 of x86-64), {}, "
      "cuda:ptx, and cuda: with {}",
      text, fmt::join(codegen::cpu_archs(), ", "), cuda_archs_text());
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
  // NAME.d, for make, Ninja and CMake: a changed file causes the libraries to be rebuilt.
  const fs::path folder = fs::absolute(output).lexically_normal();
  std::string rule;
  for (const char* suffix : {".a", ".so"})
    rule +=
        in_rule((folder / ("lib" + request.name + suffix)).string()) + (rule.empty() ? " " : ":");
  for (const std::string& file : programs.files()) rule += " \\\n " + in_rule(file);
  rule += "\n";
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
    throw UsageError("a library needs --output DIR, the folder that it goes to");
  }
  if (options.execution.cpu != "native" || options.execution.device != "cpu")
    throw UsageError("a library is built for what --target says, not --cpu or --device");
  if (options.no_passes) throw UsageError("--no-passes goes with --emit=ir");
  codegen::LibraryRequest request{
      .name = options.name, .made_by = kVersion, .targets = library_targets(options.targets)};
  if (!request.name.empty())
    require_name(codegen::why_no_library_name(request.name), "--name", request.name);
  Progress progress("parts compiled");
  request.progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); };
  LibraryFrontEnds programs(options, [&] { progress.clear(); });
  if (request.name.empty()) {
    if (programs.count() > 1) throw UsageError("a library of several compressors needs --name LIB");
    request.name = programs.name_of_first();
    require_name(codegen::why_no_library_name(request.name), "a library of the name", request.name);
  }
  write_library(request, programs, options.output);
  return ExitCode::Done;
}

}  // namespace cinch::driver
