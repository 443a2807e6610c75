// Shows the progress of long work: one line on standard error that is rewritten in place and
// removed at the end.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace cinch::driver {

// Shows `what` and the elapsed time once the work has taken 0.3 s, until it is destroyed. Only on a
// terminal, and never with --quiet or --json. If several are long enough, the newest is shown:
// "compiling topk" within "programs measured".
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `done` of `total` steps; total 0 if it is not known.
  void update(std::uint64_t done, std::uint64_t total);
  // Removes the line until the next update. Call it before you print anything else.
  void clear();

  struct Task;

 private:
  std::unique_ptr<Task> task_;  // null if nothing is shown
};

// Hides progress while it lives. For output that other code prints.
class ProgressPause {
 public:
  ProgressPause();
  ~ProgressPause();
  ProgressPause(const ProgressPause&) = delete;
  ProgressPause& operator=(const ProgressPause&) = delete;
};

// Removes the line for good in a process that a signal ends. A signal handler may call it.
void erase_progress_at_end();

}  // namespace cinch::driver
