#define CINCH_BENCH_LANES 8
#include "compiler/bench/stream_loops_level.h"

namespace cinch::bench {

const StreamLoops kStreamLoopsV3 = kLevelLoops;

}  // namespace cinch::bench
