// What the workers that build a library do next: front ends of programs, and parts to compile of
// those that are ready. NVRTC, which compiles few texts at a time, takes longer than all else, so
// it is never left without one; front ends come next, because they make parts.
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
    bool takes_turns = false;  // a part of which only so many are compiled at a time
    std::size_t cost = 0;      // of a part, in any unit
  };

  Schedule(std::size_t num_programs, std::size_t num_turns)
      : num_programs_(num_programs), num_turns_(num_turns) {}

  /// A part that may be compiled now. To be called before the program's front end ends.
  void add_part(const Task& part);
  /// Waits for a task. Programs come in ascending order, parts with the greatest cost first. None:
  /// there is nothing left that this worker could do.
  std::optional<Task> next();
  /// The worker that got the task has done it, or has failed.
  void end(const Task& task);
  /// No more parts; front ends go on, so that what is wrong with a program is always found.
  void stop_parts();
  /// No more tasks.
  void stop();

 private:
  std::optional<Task> take_now();

  std::mutex mutex_;  // of all members
  std::condition_variable changed_;
  std::size_t num_programs_, num_turns_;
  std::size_t next_program_ = 0, num_running_programs_ = 0, num_turns_taken_ = 0;
  bool is_stopped_ = false;
  std::vector<Task> in_turn_, others_;
};

}  // namespace cinch::codegen
