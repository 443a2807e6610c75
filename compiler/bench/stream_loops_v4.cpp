#define CINCH_BENCH_LANES 16
#include "compiler/bench/stream_loops_level.h"

namespace cinch::bench {

const StreamLoops kStreamLoopsV4 = kLevelLoops;

}  // namespace cinch::bench
