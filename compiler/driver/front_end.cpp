// Diagnostics on the standard streams; see front_end.h.
#include "compiler/driver/front_end.h"

#include <fmt/format.h>

#include <cstdio>

#include "compiler/driver/process/json_output.h"
#include "compiler/driver/process/progress.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/version.h"
#include "dsl/diag/render.h"

namespace cinch::driver {

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

std::vector<std::string> programs_or_library(const std::vector<std::string>& given) {
  if (!given.empty()) return given;
  std::vector<std::string> programs;
  for (const LibraryProgram& program : library_programs()) {
    programs.push_back(program.path + ":" + program.name);
  }
  return programs;
}

}  // namespace cinch::driver
