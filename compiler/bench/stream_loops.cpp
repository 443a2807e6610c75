// Chooses the level that this machine runs.
#include "compiler/bench/stream_loops.h"

#include "runtime/module/cpu_module.h"

namespace cinch::bench {

const StreamLoops& stream_loops() {
#ifdef __x86_64__
  if (rt::host_supports("x86-64-v4")) return kStreamLoopsV4;
  if (rt::host_supports("x86-64-v3")) return kStreamLoopsV3;
#endif
  return kStreamLoopsBase;
}

}  // namespace cinch::bench
