// Runs the tasks of one rank: a thread computes, another one issues exchanges in an order that all
// ranks share; both at once, as far as the tasks' dependencies allow, and as far as the step's
// tensors are ready. Exchanges are issued by the caller's thread, or by one of the runner's own
// while the caller makes tensors ready.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/piece_memory.h"
#include "runtime/sync/rank_tasks.h"
#include "runtime/sync/step_tensors.h"
#include "runtime/sync/task_times.h"
#include "runtime/sync/transport_ranks.h"

namespace cinch::rt {

struct RunnerParts {
  const Plan& plan;
  Transport& transport;
  RankTasks& compute;
  PieceMemory& memory;
  StepTensors& tensors;
  std::atomic<bool>& cancelled;  // set when a task fails, so that computing ends, too
  std::chrono::milliseconds timeout;
};

class PlanRunner {
 public:
  explicit PlanRunner(const RunnerParts& parts);
  ~PlanRunner();

  /// Run on the thread that issues exchanges, before the first task.
  using Prologue = std::function<Status()>;

  /// A step begins: no tensor is ready. No step is under way.
  void begin();
  /// The tensor's gradient may be read and its update written. From any thread, once a step.
  void make_ready(std::uint32_t tensor);
  /// All tasks once, with exchanges issued on this thread; all tensors are ready. On an error none
  /// of them runs any more, the other ranks have been told, and no memory is in use. Errors: those
  /// of the prologue and of the tasks, named; TimedOut.
  Status run(const Prologue& prologue);
  /// The same on a thread of the runner's own, while tensors become ready; join waits for its end.
  /// Errors: also TimedOut where no tensor has become ready for so long, which names one.
  void start(Prologue prologue);
  Status join();
  /// The step fails, as if a task had: from any thread.
  void fail_step(const Error& error);
  bool has_failed() const;
  /// A tensor that is not ready; none where all are.
  std::optional<std::uint32_t> find_unready() const;
  /// Have all tasks ended that write the tensor's update?
  bool is_done(std::uint32_t tensor) const;
  /// Returns true when they have, or when the step has failed; false at once for a tensor that is
  /// not ready.
  bool wait_for(std::uint32_t tensor);

  /// Of the steps that follow: tasks that may run go by rising places, and exchanges in their
  /// order, which is the same on all ranks.
  void set_order(const std::vector<std::uint32_t>& place_of_task);
  /// Did the last step spend most of its time before the last tensor was ready?
  bool waits_for_tensors() const;
  const TaskTimes& times() const { return times_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Flight {
    std::uint32_t task = 0;
    Ticket ticket;
  };

  const Task& task(std::uint32_t index) const { return own_.tasks[index]; }
  void note_tensors(std::uint32_t index);
  void let_compute(std::uint32_t index) { ready_.emplace(place_[index], index); }
  /// One of what it waits for is there. Under the lock.
  void release(std::uint32_t index);
  /// What waits for the task may run. Under the lock.
  void end_task(std::uint32_t index);
  void note_failure(std::uint32_t index, const Error& error);
  Error named(std::uint32_t index, const Error& error) const;

  void network_loop();
  Status issue(const Prologue& prologue);
  Status end_issuing();
  /// Where so long no tensor has become ready that is waited for. Under the lock.
  void check_readiness();

  /// What the task does, with its tensors made ready before and delivered behind.
  Status work(std::uint32_t index, const std::function<Status()>& task);
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
  std::vector<std::vector<std::uint32_t>> of_tensor_;    // by tensor: tasks that wait for it
  std::vector<std::vector<std::uint32_t>> tensors_of_;   // by task: those that it waits for
  std::vector<std::uint32_t> num_writers_;               // by tensor: tasks that write its update
  std::vector<std::uint32_t> place_;                     // by task: in the order of the step
  std::vector<std::uint32_t> exchanges_;                 // network tasks in order
  std::vector<std::vector<ByteRange>> sent_, received_;  // by exchange task

  using Placed = std::pair<std::uint32_t, std::uint32_t>;  // place, task
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> missing_;       // by task: tasks before it and tensors that it waits for
  std::vector<bool> is_ready_;             // by tensor
  std::vector<std::uint8_t> is_prepared_;  // by tensor; of the lane that works on it
  std::vector<std::uint32_t> writers_left_;  // by tensor
  std::priority_queue<Placed, std::vector<Placed>, std::greater<>> ready_;
  std::size_t num_left_ = 0, num_started_ = 0;
  const bool can_be_woken_;  // from a pause
  bool is_computing_ = false, is_running_ = false, is_closing_ = false;
  std::optional<Error> failure_;
  // When a tensor became ready, a task was started or ended, or a part of an exchange moved.
  Clock::time_point last_move_;
  std::uint64_t num_moves_ = 0;  // of the transport, by then
  std::vector<Flight> flights_;
  TaskTimes times_;
  // Of steps whose exchanges a thread of the runner's own issues.
  Prologue prologue_;
  bool has_work_ = false;
  bool has_issued_ = false;
  Status issued_ = Ok{};
  std::thread thread_, network_thread_;  // the second one from the first such step on
};

}  // namespace cinch::rt
