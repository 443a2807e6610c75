// Measures the floor of a program on this machine: the time of plain vector loops over the same
// streams, sweep by sweep, on the same threads, plus the program's random words at the rate of a
// bare generator.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/analysis/forced_sweeps.h"
#include "runtime/exec/aligned_buffer.h"
#include "runtime/exec/task_runner.h"

namespace cinch::bench {

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
  void run_sweep(const std::vector<analysis::Stream>& sweep);
  void run_block(const std::vector<analysis::Stream>& sweep, std::uint64_t block,
                 std::uint64_t num_blocks);
  void draw(std::uint64_t num_words);

  analysis::ForcedSweeps floor_;
  rt::TaskRunner* runner_;
  std::map<std::string, rt::AlignedBuffer> arrays_;
};

}  // namespace cinch::bench
