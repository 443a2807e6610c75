// cinch fmt: rewrites files in the canonical layout.
#include <fmt/format.h>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/process/terminal.h"
#include "dsl/syntax/syntax.h"

namespace cinch::driver {

namespace {

// Returns whether the file changes; writes nothing if it has syntax errors.
bool format_one(FrontEnd& front_end, const std::string& path, bool check_only) {
  const bool is_input = path == kStandardInput;
  const dsl::SourceBuffer& source =
      front_end.sources.add(is_input ? "standard input" : path, read_text_or_input(path));
  dsl::DiagSink sink;
  const ast::Module module = dsl::parse(source, sink);
  if (sink.has_errors()) {
    for (const dsl::Diagnostic& diag : sink.all()) front_end.sink.add(diag);
    return false;
  }
  const std::string formatted = dsl::format(source, module);
  const bool changes = formatted != source.text();
  if (check_only) {
    if (changes) print_text("{}\n", source.name());
  } else if (is_input) {
    fmt::print("{}", formatted);
  } else if (changes) {
    write_file(path, formatted);
  }
  return changes;
}

}  // namespace

ExitCode run_format(const FormatOptions& options) {
  FrontEnd front_end;
  bool changes = false;
  for (const std::string& path : options.files) {
    changes = format_one(front_end, path, options.check_only) || changes;
  }
  front_end.end_if_errors();
  return changes && options.check_only ? ExitCode::AtFault : ExitCode::Done;
}

}  // namespace cinch::driver
