// Finding and opening the compiler library, and what it gives.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/c_api/support.h"

namespace cinch::c_api {

/// What code is made for: a level of CPUs that this machine runs, or a GPU's architecture.
struct CompileTarget {
  std::string cpu, arch;  // one of them
};

/// The bytes of an image. `options` as read. The library:
/// options.compiler, else CINCH_COMPILER, else beside this one, in ../lib and ../../lib, else the
/// loader's own search. It is opened once per process and stays. Errors: UNAVAILABLE, PROGRAM, …
CallResult<std::vector<std::uint8_t>> compile(const cinch_compile_options& options,
                                              const CompileTarget& target);

/// The standard library, as JSON. Errors: UNAVAILABLE, those of the compiler library.
CallResult<std::vector<std::uint8_t>> list_programs(const char* compiler);

}  // namespace cinch::c_api
