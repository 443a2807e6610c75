// A header as Clang reads it: its tree, its files, and its errors.
#pragma once
#include <clang/Frontend/ASTUnit.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/jit/clang_backend.h"

namespace cinch::clang_backend {

/// Bytes [begin, end) of a file; no place if `path` is empty.
struct HeaderPlace {
  std::string path;
  std::size_t begin = 0, end = 0;
};

struct HeaderError {
  std::string text;
  HeaderPlace place;
};

struct HeaderFile {
  std::string path, text;
};

struct HeaderUnit {
  std::unique_ptr<clang::ASTUnit> tree;  // null if nothing could be read
  std::vector<HeaderError> errors;       // the first few
  std::vector<HeaderFile> files;         // all files, as they were read

  bool is_whole() const { return tree && !tree->getDiagnostics().hasErrorOccurred(); }
};

/// Reads the request's header followed by `more`: C++ that uses its declarations.
HeaderUnit read_header(const CinchExternRequest& request, const std::string& more);

/// The place of a token; for a token in a macro, the place where the macro is used.
HeaderPlace place_of(const clang::SourceManager& sources, clang::SourceLocation where);

}  // namespace cinch::clang_backend
