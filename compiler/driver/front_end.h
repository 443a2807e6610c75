// From files to checked programs; diagnostics are printed here.
#pragma once
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "dsl/diag/diag.h"
#include "dsl/sema/checked.h"
#include "dsl/sema/sema.h"
#include "dsl/source/source.h"

namespace cinch::driver {

// Text goes to standard error, with colour on a terminal; JSON and SARIF to standard output.
void print_diagnostics(const dsl::DiagSink& sink, const dsl::SourceSet& sources,
                       DiagnosticsFormat format = DiagnosticsFormat::Text);

// Do the bytes of a file begin like a compiled image?
bool is_image(std::string_view bytes);

// The files of one run and what is wrong with them.
struct FrontEnd {
  dsl::SourceSet sources;
  dsl::DiagSink sink;

  // Reads the file; throws CommandError where it cannot be read.
  const dsl::SourceBuffer& load(const std::string& path);
  // Prints the diagnostics; throws CommandError (AtFault) if one is an error.
  void end_if_errors() const;
};

// name=value pairs of --set. Throws CommandError (Usage).
std::vector<sema::Binding> parse_bindings(const std::vector<std::string>& words);

// The compressor with its parameters bound. Throws CommandError (AtFault) after printing
// diagnostics.
sema::CheckedProgram check_program(FrontEnd& front_end, const ProgramOptions& options);

}  // namespace cinch::driver
