// The compiler's stages, joined as the driver joins them.
#include "tests/programs/harness/compile.h"

#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "codegen/jit/compile_program.h"
#include "codegen/jit/library.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/verifier.h"
#include "compiler/interp/interp.h"
#include "compiler/ir/verifier.h"
#include "compiler/kernelize/kernelize.h"
#include "compiler/lower/lower.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/diag/render.h"
#include "dsl/sema/sema.h"
#include "runtime/core/check.h"
#include "runtime/module/cpu_module.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

namespace fs = std::filesystem;

sema::LoadedText load_text(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return {path.string(), text.str()};
}

// `import std.family` is every file of the family's folder, `std.family.name` and `std.name` one of
// them.
std::vector<sema::LoadedText> load_import(const sema::ImportRequest& request) {
  std::vector<sema::LoadedText> texts;
  if (request.std_path.empty()) {
    const fs::path path = fs::path(request.from).parent_path() / request.file;
    if (fs::exists(path)) texts.push_back(load_text(path));
    return texts;
  }
  fs::path path = CINCH_STDLIB_DIR;
  for (const std::string& part : request.std_path) path /= part;
  if (fs::is_directory(path)) {
    for (const fs::path& file : find_programs(path)) texts.push_back(load_text(file));
    return texts;
  }
  const std::string wanted = request.std_path.back() + ".cinch";
  for (const auto& entry : fs::recursive_directory_iterator(CINCH_STDLIB_DIR)) {
    if (entry.path().filename() == wanted) texts.push_back(load_text(entry.path()));
  }
  return texts;
}

rt::ExternReader extern_reader() {
  return [reader = std::make_shared<codegen::HeaderReader>(rt::HeaderSearch())](
             const rt::ExternRequest& request) -> rt::ExternReply {
    auto reply = reader->read(request);
    if (reply) return std::move(*reply);
    return {.message = reply.error().message};
  };
}

std::optional<std::vector<std::uint64_t>> evaluate_constant(const ir::Program& program,
                                                            const ir::Function& function) {
  const auto value = interp::evaluate_constant(program, function);
  if (!value) return std::nullopt;
  return value->bits;
}

template <typename T, typename Make>
tl::expected<T, std::string> caught(const Make& make) {
  try {
    return make();
  } catch (const InternalError& error) {
    return tl::make_unexpected(std::string(error.what()));
  }
}

}  // namespace

tl::expected<ir::Program, std::string> lower_program(const ProgramFile& program) {
  return caught<ir::Program>([&]() -> tl::expected<ir::Program, std::string> {
    dsl::SourceSet sources;
    dsl::DiagSink sink;
    const dsl::FileId file = sources.add(program.path, program.text).id();
    const auto module = sema::check_module(sources, file, load_import, sink,
                                           sema::CheckDepth::Names, extern_reader());
    std::optional<sema::CheckedProgram> checked;
    if (!sink.has_errors()) {
      std::vector<sema::Binding> bindings;
      for (const auto& [name, value] : program.bindings) bindings.push_back({name, value});
      checked = program.is_carrier ? sema::elaborate_carrier(module, program.name, bindings, sink)
                                   : sema::elaborate(module, program.name, bindings, sink);
    }
    if (!checked) return tl::make_unexpected(dsl::render_text(sink.all(), sources));
    ir::Program lowered = lower::lower(*checked);
    ir::verify(lowered, "lower");
    return lowered;
  });
}

tl::expected<Compiled, std::string> compile(const ProgramFile& program,
                                            codegen::StateUpdate states) {
  auto lowered = lower_program(program);
  if (!lowered) return tl::make_unexpected(lowered.error());
  return caught<Compiled>([&]() -> tl::expected<Compiled, std::string> {
    ir::Program optimised = *lowered;
    pipeline::run(optimised, {.evaluate = evaluate_constant});
    kir::KernelProgram kernels = codegen::kernelize(optimised, {states});
    kir::verify(kernels, "kernelize");
    kir::annotate_costs(kernels);
    return Compiled{std::move(*lowered), std::move(kernels)};
  });
}

tl::expected<Loaded, std::string> load_for(const kir::KernelProgram& kernels,
                                           const std::string& arch, bool count_accesses) {
  return caught<Loaded>([&]() -> tl::expected<Loaded, std::string> {
    codegen::ImageOptions options;
    options.count_accesses = count_accesses;
    const bool is_quick = arch.ends_with(kQuickly);
    if (is_quick) options.effort = codegen::Effort::Quick;
    const std::string level = is_quick ? arch.substr(0, arch.size() - kQuickly.size()) : arch;
    auto image = codegen::make_image(kernels, {codegen::TargetKind::Cpu, level}, options);
    if (!image) return tl::make_unexpected(image.error().message);
    auto loaded = rt::LoadedProgram::load(std::move(*image));
    if (!loaded) return tl::make_unexpected(loaded.error().message);
    return *loaded;
  });
}

Architectures architectures() {
  Architectures all;
  for (const char* arch : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
    (rt::host_supports(arch) ? all.present : all.missing).emplace_back(arch);
  }
  if (is_sample_run()) all.present.erase(all.present.begin(), all.present.end() - 1);
  return all;
}

std::vector<std::string> levels_of(std::string_view program) {
  std::vector<std::string> levels = architectures().present;
  const int sum = std::accumulate(program.begin(), program.end(), 0);
  const std::string quick = levels.back() + std::string(kQuickly);
  if (!is_long_run() && sum % 3 != 0) levels.erase(levels.begin(), levels.end() - 1);
  if (is_long_run() || (sum % 4 == 0 && !is_sample_run())) levels.push_back(quick);
  return levels;
}

tl::expected<std::vector<Loaded>, std::string> load_for_all(
    const kir::KernelProgram& kernels, const std::vector<std::string>& levels) {
  std::vector<Loaded> by_arch;
  for (const std::string& arch : levels) {
    auto loaded = load_for(kernels, arch);
    if (!loaded) return tl::make_unexpected(arch + ": " + loaded.error());
    by_arch.push_back(std::move(*loaded));
  }
  return by_arch;
}

namespace {

void collect_launches(const std::vector<rt::Step>& steps, std::set<std::uint32_t>& kernels) {
  for (const rt::Step& step : steps) {
    if (step.kind == rt::StepKind::Launch) kernels.insert(step.index);
    collect_launches(step.cond, kernels);
    collect_launches(step.body, kernels);
    collect_launches(step.orelse, kernels);
  }
}

}  // namespace

int count_sweeps(const rt::ProgramImage& image, rt::EntryKind entry) {
  std::set<std::uint32_t> kernels;
  collect_launches(image.entries[static_cast<std::size_t>(entry)].steps, kernels);
  int sweeps = 0;
  for (std::uint32_t kernel : kernels) {
    sweeps += image.kernels[kernel].role == rt::KernelRole::Sweep;
  }
  return sweeps;
}

}  // namespace cinch::testing
