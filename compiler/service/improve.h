// Recompiles code in the background that was compiled quickly because somebody waited. The process,
// `cinch cache improve`, ends when it is done, even if this process ends before. The better code
// goes into the cache and is used from the next time on. Results have the same bits.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/emit/kernel_source.h"
#include "compiler/service/program_lookup.h"
#include "runtime/core/error.h"

namespace cinch::service {

// What to compile again.
struct Improvement {
  ProgramRequest request;
  codegen::Target target;
  std::uint32_t block_warps = 0;
};

// Writes JSON, which `cinch cache improve` reads from its standard input.
std::string write_improvement(const Improvement& improvement);
// Errors: InvalidArgument.
rt::Result<Improvement> read_improvement(std::string_view text);

// Can such a process work? It needs `cinch` beside this library and a cache that can be written;
// CINCH_BACKGROUND must not be off.
bool can_improve();

// Starts the process, or leaves that to one that was started less than half a minute ago. Returns
// false if none could be started: there is no `cinch` beside this library, or for a GPU no NVRTC.
bool improve_later(const Improvement& improvement);

}  // namespace cinch::service
