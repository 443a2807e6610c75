// cinch lsp: a language server for editors.
#include "compiler/lsp/server.h"

#include <csignal>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/version.h"

namespace cinch::driver {

ExitCode run_lsp(const LspOptions& options) {
  // A closed editor then shows as an error of the write.
  std::signal(SIGPIPE, SIG_IGN);
  lsp::ServerOptions server;
  server.version = kVersion;
  server.headers = options.headers;
  return lsp::serve(server) ? ExitCode::Done : ExitCode::AtFault;
}

}  // namespace cinch::driver
