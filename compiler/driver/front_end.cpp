// Front end for all commands; see front_end.h.
#include "compiler/driver/front_end.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "compiler/driver/exit_code.h"
#include "compiler/driver/output_file.h"
#include "compiler/driver/program_lookup.h"
#include "compiler/driver/terminal.h"
#include "compiler/driver/version.h"
#include "dsl/diag/render.h"

namespace cinch::driver {

void print_diagnostics(const dsl::DiagSink& sink, const dsl::SourceSet& sources,
                       DiagnosticsFormat format) {
  switch (format) {
    case DiagnosticsFormat::Text: {
      const std::string text = dsl::render_text(sink.all(), sources, {colour_on_errors()});
      std::fputs(text.c_str(), stderr);
      return;
    }
    case DiagnosticsFormat::Json:
      std::puts(dsl::render_json(sink.all(), sources).c_str());
      return;
    case DiagnosticsFormat::Sarif:
      std::puts(dsl::render_sarif(sink.all(), sources, kVersion).c_str());
      return;
  }
}

bool is_image(std::string_view bytes) {
  return bytes.starts_with("CINCHIMG");
}

const dsl::SourceBuffer& FrontEnd::load(const std::string& path) {
  std::string text = read_text_file(path);
  if (is_image(text)) {
    throw CommandError(
        ExitCode::AtFault,
        path + ": a compiled image, no program text; run, encode and decode take it");
  }
  return sources.add(path, std::move(text));
}

void FrontEnd::end_if_errors() const {
  print_diagnostics(sink, sources);
  if (sink.has_errors()) throw CommandError(ExitCode::AtFault, "");
}

std::vector<sema::Binding> parse_bindings(const std::vector<std::string>& words) {
  std::vector<sema::Binding> bindings;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string text = equals == std::string::npos ? "" : word.substr(equals + 1);
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (text == "true" || text == "false") {
      value = text == "true" ? 1 : 0;
      end = nullptr;
    }
    const bool is_number = !text.empty() && (end == nullptr || *end == '\0');
    if (equals == 0 || !is_number) {
      throw CommandError(ExitCode::Usage, "--set takes name=number, not '" + word + "'");
    }
    bindings.push_back({word.substr(0, equals), value});
  }
  return bindings;
}

namespace {

// Without a name: the file's only compressor that stands alone, or the one of the file's name.
std::string choose_compressor(const sema::CheckedModule& module, const ProgramPlace& place) {
  if (!place.compressor.empty()) return place.compressor;
  std::string stem = std::filesystem::path(place.path).stem();
  std::vector<std::string> names;
  for (const sema::CompressorEntry& entry : module.compressors()) {
    if (entry.name == stem) return stem;
    if (!entry.is_wrapper) names.push_back(entry.name);
  }
  if (names.size() == 1) return names[0];
  if (names.empty()) {
    throw CommandError(ExitCode::AtFault, place.path + ": holds no compressor that stands alone");
  }
  std::string message = place.path + ": holds several compressors; say which:";
  for (const std::string& name : names) message += " " + place.path + ":" + name;
  throw CommandError(ExitCode::AtFault, message);
}

}  // namespace

sema::CheckedProgram check_program(FrontEnd& front_end, const ProgramOptions& options) {
  const std::vector<sema::Binding> bindings = parse_bindings(options.bindings);
  const ProgramPlace place = find_program(options.program);
  const dsl::SourceBuffer& file = front_end.load(place.path);
  const sema::CheckedModule module = sema::check_module(front_end.sources, file.id(), load_import,
                                                        front_end.sink, sema::CheckDepth::Names);
  if (front_end.sink.has_errors()) front_end.end_if_errors();
  const std::string name = choose_compressor(module, place);
  std::optional<sema::CheckedProgram> program =
      sema::elaborate(module, name, bindings, front_end.sink);
  front_end.end_if_errors();
  if (!program) throw CommandError(ExitCode::AtFault, "no program");
  return std::move(*program);
}

}  // namespace cinch::driver
