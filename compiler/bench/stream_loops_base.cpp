#define CINCH_BENCH_LOOPS kStreamLoopsBase
#define CINCH_BENCH_LANES 4
#include "compiler/bench/stream_loops_level.h"
