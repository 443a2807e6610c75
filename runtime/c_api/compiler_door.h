// Finds and opens the compiler library, and calls it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/c_api/support.h"

namespace cinch::c_api {

/// The target of code: a level of CPUs that this machine runs, or a GPU's architecture.
struct CompileTarget {
  std::string cpu, arch;  // one of the two is set
};

/// Compiles, and returns the bytes of an image. `options` is the caller's struct, already read.
/// Looks for the library at options.compiler, else CINCH_COMPILER, else in this library's folder,
/// in ../lib and ../../lib, else by the loader's own search. The library is opened once per process
/// and stays. Errors: UNAVAILABLE, PROGRAM, …
CallResult<std::vector<std::uint8_t>> compile(const cinch_compile_options& options,
                                              const CompileTarget& target);

/// Returns the list of the standard library, as JSON. Errors: UNAVAILABLE, those of the compiler
/// library.
CallResult<std::vector<std::uint8_t>> list_programs(const char* compiler);

}  // namespace cinch::c_api
