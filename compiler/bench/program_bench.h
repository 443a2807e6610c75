// Measures a compiled program's calls and their floor in one run: calls and floors take turns, so
// that other load on the machine affects both.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "compiler/analysis/forced_sweeps.h"
#include "compiler/bench/tuning_search.h"
#include "compiler/ir/ir.h"
#include "runtime/core/error.h"
#include "runtime/exec/program_buffers.h"
#include "runtime/exec/task_runner.h"
#include "runtime/session/loaded_program.h"
#include "runtime/session/session.h"

namespace cinch::bench {
struct BenchOptions {
  std::uint32_t threads = 0;  // 0: all of the machine
  RoundLimits limits;         // for each call and its floor
  std::uint64_t seed = 0;
  std::int64_t columns = 1;  // of a matrix program's gradient
};

struct CallFigures {
  std::string name;  // "encode", "decode", "decode_add"; "sync"
  double ms = 0;     // medians
  double floor_ms = 0;
  analysis::SweepBytes floor_bytes;
  std::int64_t floor_sweeps = 0, random_words = 0;
  int rounds = 0;
  /// The first step of this phase of the program (phases.h); 1 for the first one.
  std::uint64_t first_step = 1;

  /// 1: as fast as its floor.
  double floor_share() const { return floor_ms / ms; }
};

struct ProgramFigures {
  /// Of a program whose work changes with the step, `encode` and `sync` stand once for each phase.
  std::vector<CallFigures> calls;
  /// For a program with a `sync` body: bytes that a rank gives to collectives in a call.
  std::int64_t payload_bytes = 0;
  std::int64_t workspace_bytes = 0, state_bytes = 0;
};

/// `lowered` is the same program as lowering left it; its floor is computed from that. A `sync` is
/// one call in a world of one rank, where collectives cost copies in memory. The gradient's length
/// is a multiple of the columns. Errors: those of Session.
rt::Result<ProgramFigures> bench_program(std::shared_ptr<const rt::LoadedProgram> program,
                                         const ir::Program& lowered,
                                         std::span<const float> gradient,
                                         const BenchOptions& options);

// Measures the floor of a program on this machine: the time of plain vector loops over the same
// streams, sweep by sweep, on the same threads, plus the program's random words at the rate of a
// bare generator.

class FloorTimer {
 public:
  /// Allocates an array for each stream; streams with the same name share one. `runner` outlives
  /// the timer. Errors: OutOfMemory.
  static rt::Result<FloorTimer> make(analysis::ForcedSweeps floor, rt::TaskRunner& runner);

  const analysis::ForcedSweeps& floor() const { return floor_; }
  /// Runs everything once; returns milliseconds.
  double run();

 private:
  FloorTimer(analysis::ForcedSweeps floor, rt::TaskRunner& runner)
      : floor_(std::move(floor)), runner_(&runner) {}
  rt::Status allocate();
  void run_block(const std::vector<analysis::Stream>& sweep, std::uint64_t block,
                 std::uint64_t num_blocks);
  void draw(std::uint64_t num_words);

  analysis::ForcedSweeps floor_;
  rt::TaskRunner* runner_;
  std::map<std::string, rt::AlignedBuffer> arrays_;
};

}  // namespace cinch::bench
