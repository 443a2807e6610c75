// Code that was compiled quickly for somebody who waited, compiled again by a process that nobody
// waits for: `cinch cache improve`, which ends when it is done, whatever becomes of this process.
// The better code goes into the cache and serves from the next use on. The bits are the same.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/emit/kernel_source.h"
#include "compiler/service/program_lookup.h"
#include "runtime/core/error.h"

namespace cinch::service {

// What is to be compiled again.
struct Improvement {
  ProgramRequest request;
  codegen::Target target;
  std::uint32_t block_warps = 0;
};

// As JSON, which `cinch cache improve` reads from its standard input.
std::string write_improvement(const Improvement& improvement);
// Errors: InvalidArgument.
rt::Result<Improvement> read_improvement(std::string_view text);

// Starts the process, once for each improvement. Where there is no NVRTC, no `cinch` beside this
// library, or CINCH_BACKGROUND is off, code stays as it is: that is no error.
void improve_later(const Improvement& improvement);

}  // namespace cinch::service
