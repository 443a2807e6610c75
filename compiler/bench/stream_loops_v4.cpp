#define CINCH_BENCH_LOOPS kStreamLoopsV4
#define CINCH_BENCH_LANES 16
#include "compiler/bench/stream_loops_level.h"
