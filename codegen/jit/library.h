// Finds and opens cinch_clang, once per process.
#pragma once
#include <string>

#include "codegen/jit/clang_backend.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

struct OpenedBackend {
  const CinchClangBackend* functions = nullptr;
  std::string path;
};

/// Errors: Unavailable, with the places that were searched.
const rt::Result<OpenedBackend>& clang_backend();

}  // namespace cinch::codegen
