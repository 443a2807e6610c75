// Turns a request into a checked program.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/passes/passes.h"
#include "dsl/diag/diag.h"
#include "dsl/sema/checked.h"
#include "dsl/sema/sema.h"
#include "dsl/source/source.h"
#include "runtime/core/error.h"
#include "runtime/core/extern_function.h"

namespace cinch::service {
// Why the service cannot produce a program. Everything in the service throws this; its callers
// translate it (the command line to exit codes, the C API to statuses). Bugs of Cinch are
// InternalError.

enum class Fault {
  Program,      // errors in its text; diagnostics say where
  Request,      // an unknown name
  Argument,     // an invalid binding
  File,         // cannot be read
  Unavailable,  // not available on this machine or in this version
  Internal,
};

class ServiceError : public std::exception {
 public:
  // `message` is empty if diagnostics were shown already.
  ServiceError(Fault fault, std::string message) : fault_(fault), message_(std::move(message)) {}
  Fault fault() const { return fault_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Fault fault_;
  std::string message_;
};

[[noreturn]] void throw_error(const rt::Error& error);

template <typename T>
T value_or_throw(rt::Result<T> result) {
  if (!result) throw_error(result.error());
  return std::move(*result);
}

// Finds programs: the file and compressor of a request, the folder of the standard library, and the
// files of imports.

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
  // Is quickly compiled code compiled again in the background (compile.h)?
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

// Do the bytes of a file begin like a compiled image?
bool is_image(std::string_view bytes);
// Is the file at `path` an image? Throws ServiceError (File, Unavailable) if it cannot be read.
bool is_image_file(const std::string& path);

// The files of one run and their diagnostics.
struct FrontEnd {
  dsl::SourceSet sources;
  dsl::DiagSink sink;
  // Shows diagnostics, warnings too. Empty: the ServiceError that ends the run has the errors.
  std::function<void(const dsl::DiagSink&, const dsl::SourceSet&)> show;

  // Reads the file. Throws ServiceError: (File) if it cannot be read, (Program) if it is a compiled
  // image.
  const dsl::SourceBuffer& load(const std::string& path);
  const dsl::SourceBuffer& add(const ProgramText& program);
  // Shows the diagnostics; throws ServiceError (Program) if one is an error.
  void end_if_errors() const;
};

// Makes a reader of headers of `extern fn`. The reader throws ServiceError (Unavailable) if there
// is no compiler.
sema::ExternReader extern_reader(const rt::HeaderSearch& headers);

// Parses name=value pairs. Throws ServiceError (Argument).
std::vector<sema::Binding> parse_bindings(const std::vector<std::string>& words);
// The number to which a run-time parameter is bound. Throws ServiceError (Argument) for a word that
// the parameter does not take.
double value_of(const sema::Binding& binding, const rt::ProgramInfo& info);

// Checks the compressor with its parameters bound, or with `is_carrier` the program that carries
// its sums. Throws ServiceError: (Request) if that is no program.
sema::CheckedProgram check_program(FrontEnd& front_end, const ProgramText& program,
                                   const std::vector<std::string>& bindings,
                                   bool is_carrier = false);

struct LibraryProgram {
  std::string path, name;
};
// Compressors of the library that work alone (no wrappers), by family and name. Throws
// ServiceError.
std::vector<LibraryProgram> library_programs();

}  // namespace cinch::service
