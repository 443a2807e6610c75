// cinch check: diagnostics of files.
#include <cstdio>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/front_end.h"

namespace cinch::driver {

ExitCode run_check(const CheckOptions& options) {
  FrontEnd front_end;
  for (const std::string& path : options.files) {
    // A file that another one imports was already checked with it.
    const dsl::SourceBuffer* known = front_end.sources.find_name(path);
    const dsl::FileId file = known != nullptr ? known->id() : front_end.load(path).id();
    sema::check_module(front_end.sources, file, load_import, front_end.sink,
                       sema::CheckDepth::Everything, service::extern_reader(options.headers));
  }
  const DiagnosticsFormat format = options.json ? DiagnosticsFormat::Json : options.diagnostics;
  print_diagnostics(front_end.sink, front_end.sources, format);
  return front_end.sink.has_errors() ? ExitCode::AtFault : ExitCode::Done;
}

}  // namespace cinch::driver
