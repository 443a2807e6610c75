#define CINCH_BENCH_LANES 4
#include "compiler/bench/stream_loops_level.h"

namespace cinch::bench {

const StreamLoops kStreamLoopsBase = kLevelLoops;

}  // namespace cinch::bench
