// Runs numbered tasks on a fixed number of oneTBB threads. Tasks are started in ascending order,
// and each runs to its end on one thread, so a task may wait for lower ones (look-back).
//
// A task may run other tasks on the same runner. Idle threads help with them, and begin nothing
// else before they have ended. Tasks that run others must not wait for one another; tasks that wait
// for lower ones must not run any.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/core/error.h"

namespace cinch::rt {

/// The most threads. They are really started, to find out whether they can be; the limit keeps a
/// typing error from using up the whole process.
inline constexpr std::uint32_t kMaxThreads = 1024;

class TaskRunner {
 public:
  /// `threads` up to kMaxThreads; 0: as many as the machine has. More than that are really started
  /// (for tests); fewer if the process may not have as many.
  explicit TaskRunner(std::uint32_t threads);
  ~TaskRunner();
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  std::uint32_t threads() const { return threads_; }
  /// How often threads were started together so far: runs on several threads, without those within
  /// a task of another run.
  std::uint64_t num_regions() const { return num_regions_.load(std::memory_order_relaxed); }

  /// Calls task(0) … task(num_tasks - 1), under the default floating-point environment, and returns
  /// when all that started have ended. `cancelled` (may be null) is read before each start; once it
  /// is true no more start. Errors: Cancelled.
  template <typename Task>
  Status run(std::uint64_t num_tasks, const std::atomic<bool>* cancelled, const Task& task) {
    // By reference: a std::function then allocates nothing.
    return run_each(num_tasks, cancelled, std::cref(task));
  }

 private:
  Status run_each(std::uint64_t num_tasks, const std::atomic<bool>* cancelled,
                  const std::function<void(std::uint64_t)>& task);
  struct Arena;
  void run_on_arena(std::uint32_t workers, const std::function<void()>& work);

  std::uint32_t threads_;
  std::atomic<std::uint64_t> num_regions_{0};
  std::unique_ptr<Arena> arena_;  // null for one thread
};

}  // namespace cinch::rt
