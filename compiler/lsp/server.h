// The language server: serves one editor over two file descriptors.
#pragma once
#include <string>

#include "runtime/core/extern_function.h"

namespace cinch::lsp {

struct ServerOptions {
  int input = 0, output = 1;
  std::string version;  // sent to the editor
  rt::HeaderSearch headers;
};

/// Serves until the editor sends `exit` or the input ends. Returns true if it ended as the protocol
/// demands: `exit` after `shutdown`.
bool serve(const ServerOptions& options);

}  // namespace cinch::lsp
