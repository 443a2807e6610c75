// The service's front end for commands: it prints diagnostics.
#pragma once
#include "compiler/driver/options.h"
#include "compiler/service/compile.h"
#include "compiler/service/front_end.h"

namespace cinch::driver {

using service::library_programs;
using service::LibraryProgram;
using service::load_import;
using service::stdlib_files;
using service::stdlib_folder;
using service::StdlibFile;

// For standard error, with colour if that is a terminal.
std::string diagnostics_text(const dsl::DiagSink& sink, const dsl::SourceSet& sources);
// Text goes to standard error, with colour on a terminal; JSON and SARIF to standard output.
void print_diagnostics(const dsl::DiagSink& sink, const dsl::SourceSet& sources,
                       DiagnosticsFormat format = DiagnosticsFormat::Text);

// With --quiet, only the errors.
dsl::DiagSink wanted_diagnostics(const dsl::DiagSink& all);

struct FrontEnd : service::FrontEnd {
  FrontEnd();
};

// Compiles, and tells the user on a terminal if that takes long.
rt::ProgramImage compile_program(service::FrontEnd& front_end, const ProgramOptions& program,
                                 const codegen::Target& target);

// The given programs, else the compressors of the library that work alone, as path:name.
std::vector<std::string> programs_or_library(const std::vector<std::string>& given);

}  // namespace cinch::driver
