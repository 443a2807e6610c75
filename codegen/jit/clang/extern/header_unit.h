// A header as Clang reads it: its tree, the files behind it, and what was wrong.
#pragma once
#include <clang/Frontend/ASTUnit.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/jit/clang_backend.h"

namespace cinch::clang_backend {

/// Bytes [begin, end) of a file; no place where `path` is empty.
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
  std::unique_ptr<clang::ASTUnit> tree;  // null: nothing could be read at all
  std::vector<HeaderError> errors;       // the first few
  std::vector<HeaderFile> files;         // everything that was read, as it was read

  bool is_whole() const { return tree && !tree->getDiagnostics().hasErrorOccurred(); }
};

/// Reads the request's header, with `more` behind it: C++ that names what it declares.
HeaderUnit read_header(const CinchExternRequest& request, const std::string& more);

/// Of the token at a location; in a macro, of where it is used.
HeaderPlace place_of(const clang::SourceManager& sources, clang::SourceLocation where);

}  // namespace cinch::clang_backend
