// Finding and opening the compiler library, and what it gives.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/c_api/support.h"

namespace cinch::c_api {

/// The bytes of an image. `options` as read; `cpu` is a level that this machine runs. The library:
/// options.compiler, else CINCH_COMPILER, else beside this one, in ../lib and ../../lib, else the
/// loader's own search. It is opened once per process and stays. Errors: UNAVAILABLE, PROGRAM, …
CallResult<std::vector<std::uint8_t>> compile(const cinch_compile_options& options,
                                              const char* cpu);

}  // namespace cinch::c_api
