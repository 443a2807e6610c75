// The workers that build a library. Decides what they do next: front ends of programs, or parts to
// compile of programs that are known. Also runs NVRTC in several processes, since within one
// process it compiles one text at a time, on about one core.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "runtime/core/error.h"

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

// Runs NVRTC in several processes, since within one process it compiles one text at a time, on
// about one core.

/// Child processes, each of which opens NVRTC at its first request. They end with this object, and
/// with the thread that made it.
class NvrtcProcesses {
 public:
  /// Forks up to `count` processes. Forks none if this process has more than one thread, which a
  /// fork would not copy, or if the system refuses.
  explicit NvrtcProcesses(std::size_t count);
  ~NvrtcProcesses();
  NvrtcProcesses(const NvrtcProcesses&) = delete;
  NvrtcProcesses& operator=(const NvrtcProcesses&) = delete;

  std::size_t count() const { return children_.size(); }
  /// Calls nvrtc_binary in a free process; waits for one. From any thread. Errors: those of
  /// nvrtc_binary, and Internal if the process has ended.
  rt::Result<std::vector<std::uint8_t>> compile(const KernelSource& source, bool is_ptx);

 private:
  struct Child {
    pid_t process = 0;
    int socket = -1;
  };
  void start_child();

  std::vector<Child> children_;
  std::mutex mutex_;  // guards `free_`
  std::condition_variable is_free_;
  std::vector<std::size_t> free_;  // indices of children
};

}  // namespace cinch::codegen
