// cinch check: diagnostics of files, and of programs of the standard library.
#include <cstdio>
#include <filesystem>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/service/program_lookup.h"

namespace cinch::driver {
namespace {

// What looks like a file is one, also if it is not there.
const dsl::SourceBuffer& load(FrontEnd& front_end, const std::string& name) {
  std::error_code ignored;
  const bool is_file =
      name.find_first_of("./") != std::string::npos || std::filesystem::exists(name, ignored);
  if (is_file) return front_end.load(name);
  return front_end.add(service::find_program({.program = name}));
}

}  // namespace

ExitCode run_check(const CheckOptions& options) {
  FrontEnd front_end;
  for (const std::string& path : options.files) {
    // A file that another one imports was already checked with it.
    const dsl::SourceBuffer* known = front_end.sources.find_name(path);
    const dsl::FileId file = known != nullptr ? known->id() : load(front_end, path).id();
    sema::check_module(front_end.sources, file, service::import_loader(options.headers.confine),
                       front_end.sink, sema::CheckDepth::Everything,
                       service::extern_reader(options.headers));
  }
  const DiagnosticsFormat format = options.json ? DiagnosticsFormat::Json : options.diagnostics;
  print_diagnostics(front_end.sink, front_end.sources, format);
  return front_end.sink.has_errors() ? ExitCode::AtFault : ExitCode::Done;
}

}  // namespace cinch::driver
