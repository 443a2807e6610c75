// How far long work is: one line on standard error that is rewritten in place and taken away.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace cinch::driver {

// Shows `what` once the work has taken 0.3 s, and how long it has gone on, until it is destroyed.
// Only on a terminal, and never with --quiet or --json. Of several, the one made last is shown
// that has taken so long: "compiling topk" within "programs measured".
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `done` of `total` steps; total 0 where it is not known.
  void update(std::uint64_t done, std::uint64_t total);
  // Takes the line away until the next update: before anything else is printed.
  void clear();

  struct Task;

 private:
  std::unique_ptr<Task> task_;  // null: nothing is shown
};

// While one lives, no progress is on the terminal: around output that others print.
class ProgressPause {
 public:
  ProgressPause();
  ~ProgressPause();
  ProgressPause(const ProgressPause&) = delete;
  ProgressPause& operator=(const ProgressPause&) = delete;
};

// Of a process that a signal ends: takes the line away for good. May be called by a signal handler.
void erase_progress_at_end();

}  // namespace cinch::driver
