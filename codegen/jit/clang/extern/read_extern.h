// The interface of this folder: turns an `extern fn` of a program into text that kernels compile.
#pragma once

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/Frontend/ASTUnit.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/jit/clang_backend.h"
#include "runtime/core/extern_function.h"

namespace cinch::clang_backend {
// A header as Clang reads it: its tree, its files, and its errors.

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

struct ExternAnswer {
  rt::ExternOutcome outcome = rt::ExternOutcome::HeaderBroken;
  std::string message, source;
  std::uint64_t work = 0;
  std::vector<HeaderError> notes;
  std::vector<HeaderFile> files;
};

/// Runs on a thread with a large enough stack for Clang. Throws std::bad_alloc if memory runs out;
/// nothing of LLVM may be used after that.
ExternAnswer read_extern(const CinchExternRequest& request);
void forget_headers();

// ---- answers as the plain data of the library's interface (read_extern.cpp) ----
CinchExternReply* make_reply(ExternAnswer answer);
CinchExternReply* no_memory_reply();
void release_extern(CinchExternReply* reply);

}  // namespace cinch::clang_backend
