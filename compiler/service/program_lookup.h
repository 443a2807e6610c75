// Where programs are: a request to a file and a compressor in it, the folder of
// the standard library, and the files behind an import.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/passes/state_update.h"
#include "dsl/sema/sema.h"
#include "runtime/core/extern_function.h"

namespace cinch::service {

// A compressor and the values of its parameters.
struct ProgramRequest {
  // A path, path:name, a name of the standard library, or an expression over it:
  // "error_feedback(onebit)", "topk(ratio: 0.01)". With `text`: what the text is called and,
  // behind a colon, the compressor in it.
  std::string program;
  std::vector<std::string> bindings;  // name=value
  std::optional<std::string> text;
  codegen::StateUpdate states = codegen::StateUpdate::SecondBuffer;
  // Rewrites, fusion steps and passes over kernels that are done; nothing is kept in the cache.
  std::optional<std::int64_t> pass_limit = {};
  rt::HeaderSearch headers = {};  // of `extern fn`
  // Nobody waits: code for GPUs is optimised fully. The cache keeps either, and prefers this.
  bool is_ahead_of_time = false;
  // Code for GPUs that is compiled quickly is compiled again in the background (improve.h).
  bool is_improved_later = false;
};

struct ProgramText {
  std::string path;        // a file, or what a text without one is called
  std::string compressor;  // empty: the only one, or the one of the file's name
  std::string text;
  rt::HeaderSearch headers = {};
};

// Throws ServiceError (Request) with what is nearly right where there is no such program, (File)
// where it cannot be read.
ProgramText find_program(const ProgramRequest& request);

// CINCH_STDLIB, else the folder installed with this executable or library, else that of the tree it
// was built in. "" if none.
std::string stdlib_folder();

struct StdlibFile {
  std::string family, path;
};
// All programs of the standard library, by family and name.
std::vector<StdlibFile> stdlib_files();

// Imports: std.family, std.family.name and std.name from the standard library, paths relative to
// the importing file.
std::vector<sema::LoadedText> load_import(const sema::ImportRequest& request);

}  // namespace cinch::service
