// The target of code, from the command line.
#pragma once

#include <memory>
#include <string_view>

#include "codegen/emit/kernel_source.h"
#include "compiler/driver/options.h"
#include "compiler/service/compile.h"
#include "runtime/gpu/device.h"
#include "runtime/image/image.h"

namespace cinch::driver {
// Warns once of settings that cannot be used: a user's tuning table, the cache's limit. The
// functions below call it.
void warn_of_settings();
// Does code run on a GPU, real or emulated?
bool is_gpu(const ExecutionOptions& options);
// Opens the device that options name: "cuda" or "emulated". Throws CommandError (Unavailable).
std::shared_ptr<rt::GpuDevice> open_gpu(const ExecutionOptions& options, int ordinal = 0);
// Throws CommandError (Unavailable) for devices and processors that this machine lacks.
codegen::Target find_target(const ExecutionOptions& options, bool must_run);
// Is it an architecture: "sm_90", and with a letter code for one architecture ("sm_90a", from 90
// on) or for its family ("sm_100f", from 100 on) alone? The number is that of a known GPU, one that
// the NVRTC at hand compiles for, or a newer one, up to 999.
bool is_cuda_arch(std::string_view arch);
// The architectures that is_cuda_arch accepts, for messages.
std::string cuda_archs_text();
// Parses "cpu", "cpu:x86-64-v3", "x86-64-v3", "aarch64", "cuda", "cuda:sm_90", "sm_90", "emulated".
// Throws CommandError (Usage).
codegen::Target parse_target(const std::string& text);
// "native" and all architectures.
std::vector<std::string> known_cpus();
// Targets that parse_target takes, in their short forms.
std::vector<std::string> known_targets();
// The image, if PROGRAM is an image file, which needs no compiler. Throws CommandError if it is
// corrupt, or if options ask for another device or processor than its own.
std::optional<rt::ProgramImage> find_image(const ProgramOptions& options,
                                           const ExecutionOptions& execution);

// The service's front end for commands: it prints diagnostics.

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

// Splits "onebit, topk(ratio: 0.1, a: 2)" into two: commas within brackets belong to a program.
// Throws CommandError (Usage), which names the option.
std::vector<std::string> split_programs(const std::vector<std::string>& words,
                                        const std::string& option);

// The given programs, else the compressors of the library that work alone, as path:name.
std::vector<std::string> programs_or_library(const std::vector<std::string>& given);

// The version of this build, for --version, doctor and reports.

inline constexpr const char* kVersion = CINCH_VERSION;

}  // namespace cinch::driver
