// Turns a request into a checked program.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/service/program_lookup.h"
#include "dsl/diag/diag.h"
#include "dsl/sema/checked.h"
#include "dsl/sema/sema.h"
#include "dsl/source/source.h"

namespace cinch::service {

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
