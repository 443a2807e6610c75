#define CINCH_BENCH_LANES 8
#include "compiler/bench/stream_loops_level.h"

namespace cinch::bench {

extern const StreamLoops kStreamLoopsV3;
const StreamLoops kStreamLoopsV3 = kLevelLoops;

}  // namespace cinch::bench
