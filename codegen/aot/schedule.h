// Decides what the workers that build a library do next: front ends of programs, or parts to
// compile of programs that are ready. NVRTC compiles few texts at a time and takes longest, so it
// is always kept busy; front ends come next, because they make parts.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace cinch::codegen {

/// Tasks for several workers. All functions may be called from any thread.
class Schedule {
 public:
  struct Task {
    bool is_program = false;  // the front end of a program; else a part to compile
    std::size_t index = 0;
    // A part of a kind that only a limited number of workers compile at a time
    bool takes_turns = false;
    std::size_t cost = 0;  // of a part, in any unit
  };

  Schedule(std::size_t num_programs, std::size_t num_turns)
      : num_programs_(num_programs), num_turns_(num_turns) {}

  /// Adds a part that may be compiled now. Call it before the program's front end ends.
  void add_part(const Task& part);
  /// Waits for a task. Programs come in ascending order, parts by falling cost. None: nothing is
  /// left for this worker.
  std::optional<Task> next();
  /// The worker has done the task, or has failed.
  void end(const Task& task);
  /// Hands out no more parts; front ends go on, so that errors of programs are always found.
  void stop_parts();
  /// Hands out no more tasks.
  void stop();

 private:
  std::optional<Task> take_now();

  std::mutex mutex_;  // guards all members
  std::condition_variable changed_;
  std::size_t num_programs_, num_turns_;
  std::size_t next_program_ = 0, num_running_programs_ = 0, num_turns_taken_ = 0;
  bool is_stopped_ = false;
  std::vector<Task> in_turn_, others_;
};

}  // namespace cinch::codegen
