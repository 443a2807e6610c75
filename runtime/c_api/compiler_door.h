// Finds and opens the compiler library, and calls it.
#pragma once
#include <optional>
#include <vector>

#include "runtime/c_api/support.h"
#include "runtime/session/loaded_program.h"

namespace cinch::c_api {

/// The target of code: a level of CPUs that this machine runs, or a GPU's architecture.
struct CompileTarget {
  std::string cpu, arch;  // one of the two is set
};

/// A copy of a caller's cinch_compile_options, which are already checked, and a target. Looks for
/// the compiler library at options.compiler, else CINCH_COMPILER, else in this library's folder, in
/// ../lib and ../../lib, else by the loader's own search. The library is opened once per process
/// and stays.
class CompileJob {
 public:
  CompileJob(const cinch_compile_options& options, CompileTarget target);

  /// An image's bytes. Code that was compiled quickly, since somebody waits, has the name of the
  /// better code that takes its place.
  struct Image {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint8_t> better;  // a name, or empty
    std::string warnings;              // of the program, as text for people
  };
  struct How {
    bool is_ahead_of_time = false;  // with all optimisations
    bool is_carrier = false;        // the program that carries sums of this one
    bool for_cpus = false;          // of this machine, whatever the target
  };
  /// Compiles. Errors: UNAVAILABLE, PROGRAM, …
  CallResult<Image> run(How how) const;
  /// Returns a search for the better code of this name, which works as long as the process runs.
  rt::FindBetterCode finder(std::vector<std::uint8_t> better) const;

 private:
  std::optional<std::string> program_, text_, compiler_, compile_commands_, confine_;
  std::vector<std::string> bindings_, include_folders_;
  std::int32_t states_;
  CompileTarget target_;
};

/// Returns the list of the standard library, as JSON. Errors: UNAVAILABLE, those of the compiler
/// library.
CallResult<std::vector<std::uint8_t>> list_programs(const char* compiler);

}  // namespace cinch::c_api
