// Runs the tasks of one rank: a thread computes, the caller's thread issues exchanges in the plan's
// order; both at once, as far as the tasks' dependencies allow.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/piece_memory.h"
#include "runtime/sync/rank_tasks.h"
#include "runtime/sync/task_times.h"
#include "runtime/sync/transport_ranks.h"

namespace cinch::rt {

struct RunnerParts {
  const Plan& plan;
  Transport& transport;
  RankTasks& compute;
  PieceMemory& memory;
  std::atomic<bool>& cancelled;  // set when a task fails, so that computing ends, too
  std::chrono::milliseconds timeout;
};

class PlanRunner {
 public:
  explicit PlanRunner(const RunnerParts& parts);
  ~PlanRunner();

  /// All tasks once. On an error none of them runs any more, the other ranks have been told, and
  /// no memory is in use. Errors: those of the tasks, named; TimedOut. All tasks may have run
  /// although another rank's have not: see failure_elsewhere.
  Status run();
  /// How long the others are waited for: not much where one is known to have failed.
  std::chrono::milliseconds patience() const;
  const std::optional<Error>& failure_elsewhere() const { return failure_elsewhere_; }
  const TaskTimes& times() const { return times_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Flight {
    std::uint32_t task = 0;
    Ticket ticket;
  };

  const Task& task(std::uint32_t index) const { return own_.tasks[index]; }
  void reset();
  /// What waits for the task may run. Under the lock.
  void end_task(std::uint32_t index);
  void note_failure(std::uint32_t index, const Error& error);
  Error named(std::uint32_t index, const Error& error) const;

  void compute_loop();
  void compute_one(std::unique_lock<std::mutex>& lock);
  /// May the next exchange begin? Under the lock.
  bool is_next_ready() const;

  /// The next exchange in the plan's order, if what it waits for has ended.
  std::optional<std::uint32_t> next_exchange();
  bool start_exchanges();
  bool start_one(std::uint32_t index);
  Result<Exchange> exchange_of(std::uint32_t index);
  bool test_flights();
  void wait();

  RunnerParts parts_;
  const RankPlan& own_;
  TransportRanks ranks_;                                 // of tasks that are protocols
  std::vector<std::vector<std::uint32_t>> next_;         // by task: those that wait for it
  std::vector<std::uint32_t> exchanges_;                 // network tasks in order
  std::vector<std::vector<ByteRange>> sent_, received_;  // by exchange task

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> missing_;  // by task: tasks before it that have not ended
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready_;
  std::size_t num_left_ = 0, num_started_ = 0;
  const bool can_be_woken_;  // from a pause
  bool is_computing_ = false, is_running_ = false, is_closing_ = false;
  std::optional<Error> failure_;
  std::optional<Error> failure_elsewhere_;  // which that rank is to tell about
  Clock::time_point last_move_;  // when a task was started or ended, or a part of an exchange moved
  std::uint64_t num_moves_ = 0;  // of the transport, by then
  std::vector<Flight> flights_;
  TaskTimes times_;
  std::thread thread_;
};

}  // namespace cinch::rt
