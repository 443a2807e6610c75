// Which level this machine runs.
#include "compiler/bench/stream_loops.h"

#include "runtime/module/cpu_module.h"

namespace cinch::bench {

extern const StreamLoops stream_loops_base;
#ifdef __x86_64__
extern const StreamLoops stream_loops_v3, stream_loops_v4;
#endif

const StreamLoops& stream_loops() {
#ifdef __x86_64__
  if (rt::host_supports("x86-64-v4")) return stream_loops_v4;
  if (rt::host_supports("x86-64-v3")) return stream_loops_v3;
#endif
  return stream_loops_base;
}

}  // namespace cinch::bench
