#include "compiler/driver/library/library.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "codegen/aot/texts.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/process/exit_code.h"
#include "compiler/service/compile.h"

namespace cinch::driver {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const dsl::SourceSet& sources) {
  std::vector<std::string> files;
  for (dsl::FileId id = 0; id < sources.num_files(); ++id) {
    std::error_code code;
    const fs::path path = fs::absolute(sources.find(id)->name(), code);
    if (!code && fs::is_regular_file(path, code)) files.push_back(path.lexically_normal().string());
  }
  return files;
}

}  // namespace

void require_name(const std::string& why, const std::string& what, const std::string& name) {
  if (!why.empty())
    throw CommandError(ExitCode::Usage, fmt::format("{} '{}': {}", what, name, why));
}

LibraryFrontEnds::LibraryFrontEnds(const BuildOptions& options,
                                   std::function<void()> before_printing)
    : before_printing_(std::move(before_printing)) {
  std::vector<std::string> texts = {options.program.program};
  texts.insert(texts.end(), options.more_files.begin(), options.more_files.end());
  programs_.resize(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    programs_[i].options = options.program;
    programs_[i].options.program = texts[i];
  }
}

void LibraryFrontEnds::make(Program& program) {
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

void LibraryFrontEnds::prepare(std::size_t index) {
  Program& program = programs_[index];
  if (std::exchange(program.is_prepared, true)) return;
  try {
    make(program);
  } catch (...) {
    program.failure = std::current_exception();
  }
}

const std::string& LibraryFrontEnds::show(Program& program) {
  const std::string text = std::exchange(program.diagnostics, {});
  if (!text.empty()) before_printing_();
  std::fputs(text.c_str(), stderr);
  if (program.failure) std::rethrow_exception(program.failure);
  const std::string& name = program.made.name;
  require_name(codegen::why_no_name(name), "compressor", name);
  return name;
}

std::string LibraryFrontEnds::name_of_first() {
  prepare(0);
  return show(programs_[0]);
}

codegen::LibraryProgram LibraryFrontEnds::take(std::size_t index) {
  Program& program = programs_[index];
  const std::string& name = show(program);
  const std::string& text = program.options.program;
  const auto [at, is_new] = taken_.emplace(name, text);
  if (!is_new) {
    throw CommandError(
        ExitCode::Usage,
        fmt::format("two compressors of the name '{}': of {} and of {}", name, at->second, text));
  }
  files_.insert(program.files.begin(), program.files.end());
  return std::move(program.made);
}

}  // namespace cinch::driver
