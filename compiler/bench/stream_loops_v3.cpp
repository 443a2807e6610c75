#define CINCH_BENCH_LOOPS kStreamLoopsV3
#define CINCH_BENCH_LANES 8
#include "compiler/bench/stream_loops_level.h"
