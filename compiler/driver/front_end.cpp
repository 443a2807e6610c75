// Diagnostics on the standard streams; see front_end.h.
#include "compiler/driver/front_end.h"

#include <fmt/format.h>

#include <cstdio>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/version.h"
#include "dsl/diag/render.h"

namespace cinch::driver {

std::string diagnostics_text(const dsl::DiagSink& sink, const dsl::SourceSet& sources) {
  return dsl::render_text(sink.all(), sources, {colour_on_errors()});
}

void print_diagnostics(const dsl::DiagSink& sink, const dsl::SourceSet& sources,
                       DiagnosticsFormat format) {
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

FrontEnd::FrontEnd() {
  show = [](const dsl::DiagSink& diagnostics, const dsl::SourceSet& files) {
    print_diagnostics(diagnostics, files);
  };
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
