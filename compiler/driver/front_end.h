// The service's front end for commands: diagnostics are printed.
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

// For standard error, with colour where that is a terminal.
std::string diagnostics_text(const dsl::DiagSink& sink, const dsl::SourceSet& sources);
// Text goes to standard error, with colour on a terminal; JSON and SARIF to standard output.
void print_diagnostics(const dsl::DiagSink& sink, const dsl::SourceSet& sources,
                       DiagnosticsFormat format = DiagnosticsFormat::Text);

// With --quiet the errors alone.
dsl::DiagSink wanted_diagnostics(const dsl::DiagSink& all);

struct FrontEnd : service::FrontEnd {
  FrontEnd();
};

// Compiles, and says so on a terminal if that takes long.
rt::ProgramImage compile_program(service::FrontEnd& front_end, const ProgramOptions& program,
                                 const codegen::Target& target);

// The given ones, else the compressors of the library that stand alone, as path:name.
std::vector<std::string> programs_or_library(const std::vector<std::string>& given);

}  // namespace cinch::driver
