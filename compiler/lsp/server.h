// The language server: one editor, over two file descriptors.
#pragma once
#include <string>

#include "runtime/core/extern_function.h"

namespace cinch::lsp {

struct ServerOptions {
  int input = 0, output = 1;
  std::string version;  // told to the editor
  rt::HeaderSearch headers;
};

/// Serves until the editor says `exit` or the input ends. True where it ended as the protocol
/// wants: `exit` behind `shutdown`.
bool serve(const ServerOptions& options);

}  // namespace cinch::lsp
