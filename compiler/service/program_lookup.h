// Finds programs: the file and compressor of a request, the folder of the standard library, and the
// files of imports.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/passes/run.h"
#include "dsl/sema/sema.h"
#include "runtime/core/extern_function.h"

namespace cinch::service {

// A compressor and the values of its parameters.
struct ProgramRequest {
  // A path, path:name, a name of the standard library, or an expression over it:
  // "error_feedback(onebit)", "topk(ratio: 0.01)". With `text`: the name of the text and, after a
  // colon, the compressor in it.
  std::string program;
  std::vector<std::string> bindings;  // name=value
  std::optional<std::string> text;
  codegen::StateUpdate states = codegen::StateUpdate::SecondBuffer;
  // The most rewrites, fusion steps and passes over kernels. With a limit nothing is kept in the
  // cache.
  std::optional<std::int64_t> pass_limit = {};
  rt::HeaderSearch headers = {};  // of `extern fn`
  // Is nobody waiting? Code for GPUs is then fully optimised. The cache keeps both kinds, and
  // prefers this one.
  bool is_ahead_of_time = false;
  // Is quickly compiled code compiled again in the background (improve.h)?
  bool is_improved_later = false;
  // Does the caller replace quickly compiled code once better code is there? Code that cannot be
  // replaced then is fully optimised at once, since quickly compiled code is several times as slow.
  // Without that, code for CPUs is always fully optimised at once.
  bool replaces_code = false;
  // Is the program that carries sums of this one meant (rt::SumCarrier), in its place?
  bool is_carrier = false;
};

struct ProgramText {
  std::string path;        // a file, or the name of a text without one
  std::string compressor;  // empty: the only one, or the one with the file's name
  std::string text;
  rt::HeaderSearch headers = {};
};

// Throws ServiceError: (Request) with similar names if there is no such program, (File) if it
// cannot be read.
ProgramText find_program(const ProgramRequest& request);

// CINCH_STDLIB, else the folder installed with this executable or library, else that of the tree in
// which it was built. "" if there is none.
std::string stdlib_folder();

struct StdlibFile {
  std::string family, path;
};
// All files of the standard library, by family and name.
std::vector<StdlibFile> stdlib_files();
// Does the file hold what other programs are made of, and nothing for users?
bool is_part(const StdlibFile& file);

// Loads an import: std.family, std.family.name and std.name from the standard library, paths
// relative to the importing file.
std::vector<sema::LoadedText> load_import(const sema::ImportRequest& request);
// Fails if the file lies outside of the folder, which may be empty: anywhere. The standard library
// may always be imported.
rt::Status check_import(const sema::ImportRequest& request, const std::string& confine);
// Both in one.
sema::Loader import_loader(const std::string& confine);

}  // namespace cinch::service
