// From a request to a checked program.
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
// Of what there is at `path`. Throws ServiceError (File, Unavailable) where it cannot be read.
bool is_image_file(const std::string& path);

// The files of one run and what is wrong with them.
struct FrontEnd {
  dsl::SourceSet sources;
  dsl::DiagSink sink;
  // How diagnostics are told, warnings too; empty: errors stand in the ServiceError that ends the
  // run.
  std::function<void(const dsl::DiagSink&, const dsl::SourceSet&)> show;

  // Reads the file; throws ServiceError (File) where it cannot be read, (Program) where it is a
  // compiled image.
  const dsl::SourceBuffer& load(const std::string& path);
  const dsl::SourceBuffer& add(const ProgramText& program);
  // Shows the diagnostics; throws ServiceError (Program) if one is an error.
  void end_if_errors() const;
};

// Reads headers of `extern fn`. What it returns throws ServiceError (Unavailable) where there is no
// compiler.
sema::ExternReader extern_reader(const rt::HeaderSearch& headers);

// name=value pairs. Throws ServiceError (Argument).
std::vector<sema::Binding> parse_bindings(const std::vector<std::string>& words);
// The number that a run-time parameter is bound to. Throws ServiceError (Argument) for a word that
// the parameter does not take.
double value_of(const sema::Binding& binding, const rt::ProgramInfo& info);

// The compressor with its parameters bound. Throws ServiceError.
sema::CheckedProgram check_program(FrontEnd& front_end, const ProgramText& program,
                                   const std::vector<std::string>& bindings);

struct LibraryProgram {
  std::string path, name;
};
// Compressors of the library that stand alone, by family and name. Throws ServiceError.
std::vector<LibraryProgram> library_programs();

}  // namespace cinch::service
