// Runs the tasks of one rank. One thread computes, another issues exchanges in an order that all
// ranks share; where some tensors are encoded on the CPUs of a rank with a GPU, a third one does
// that. All run at once, as far as the tasks' dependencies and the step's ready tensors allow. The
// caller's thread issues exchanges, or a thread of the runner does while the caller makes tensors
// ready.
#pragma once

#include <atomic>
#include <condition_variable>
#include <queue>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/collective/join_ranks.h"
#include "runtime/sync/protocol_parts.h"
#include "runtime/sync/states/restore_states.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {
// Connects a program's `sync` to the other ranks over a transport. Each collective is an exchange;
// a small exchange before it tells how the ranks' calls go.

class TransportRanks : public RankExchange {
 public:
  /// Adds phase and tensor to an error, for other ranks.
  using Naming = std::function<Error(const Error&)>;

  TransportRanks(Transport& transport, std::chrono::milliseconds timeout)
      : transport_(transport),
        timeout_(timeout),
        words_(transport.world()),
        parts_(transport.world()) {}

  /// Call this before the first call of a protocol, which `what` names for the log.
  void begin(Naming naming, std::function<std::string()> what);
  Result<RankStatus> exchange(const CollectiveCall& call) override;
  Result<RankStatus> agree(RankStatus own) override;

  /// The error for the caller of a protocol that failed with `error`: if another rank is at fault,
  /// that rank's error.
  Error reason_of(const Error& error);

 private:
  // One rank's part of an agreement: words without padding, as they travel.
  struct RankWord {
    std::uint64_t status = 0;  // a RankStatus
    RankOffer offer;           // of the collective that the rank waits at
  };

  Exchange exchange_of(const CollectiveCall& call);
  /// Runs the exchange, after an agreement on the offers of all ranks.
  Result<RankStatus> exchange_routed(const CollectiveCall& call);
  /// As exchange_now, but its errors have no names yet.
  Status run(const Exchange& exchange, std::chrono::milliseconds timeout);
  Result<RankStatus> agree_within(std::chrono::milliseconds timeout, RankStatus status,
                                  const RankOffer& offer = {});

  Transport& transport_;
  const std::chrono::milliseconds timeout_;
  Naming naming_;
  std::function<std::string()> what_;
  std::vector<RankWord> words_;  // of the last agreement, by rank
  std::vector<ByteRange> parts_;
  bool has_failed_elsewhere_ = false;
};

// The computing tasks of one rank, as an interface for whoever runs plans (device_tasks.h
// implements it).

/// Where an exchange finds the wire, and the stream whose work must end before it.
struct WirePlace {
  std::span<std::uint8_t> bytes;
  MemoryPlace place = MemoryPlace::Host;
  void* after = nullptr;
};

class RankTasks {
 public:
  RankTasks() = default;
  RankTasks(const RankTasks&) = delete;
  RankTasks& operator=(const RankTasks&) = delete;
  virtual ~RankTasks() = default;

  /// Sets a parameter of one codec's programs. Errors: those of Session::set_parameter.
  virtual Status set_parameter(std::uint32_t codec, std::string_view name, double value) = 0;

  /// Prepares a step, before its first task. Errors: InvalidArgument (a payload of this step may be
  /// longer than its room in the plan, which was made for a later step), those of
  /// Session::payload_bound.
  virtual Status begin_step(std::uint64_t step) = 0;
  /// Runs a task that is not an exchange. Errors: those of the sessions, CorruptPayload.
  virtual Status run(const Task& task, PieceMemory& memory) = 0;
  /// The place of the wire for the next exchange; tasks may run at the same time. Errors: Device.
  virtual Result<WirePlace> wire_of(const Task& /*exchange*/, PieceMemory& memory) {
    return WirePlace{memory.wire()};
  }
  /// How this step's calls went, for programs with a `sync` that run in parts.
  virtual const ProtocolParts& protocols() const = 0;
  /// Runs the protocol of a program whose `sync` is one task. Errors: those of Session::sync.
  virtual Status synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) = 0;
  /// Ends the step, after its last task or one that failed. All work that was begun is then done.
  /// Errors: Device, and named errors of tasks that had only been begun.
  virtual Status end_step() = 0;
  /// take_back_step sets all states back to those before the step; take_back_piece those of one
  /// piece, at all sites.
  virtual void take_back_step() = 0;
  virtual void take_back(std::uint32_t piece) = 0;
  /// Fills the update of a piece, if this rank gets it, with one value. Errors: Device.
  enum class Fill : std::uint8_t { Zero, NaN };
  virtual Status fill_update(std::uint32_t piece, Fill with, PieceMemory& memory) = 0;

  /// Sets the piece's states, at all sites, back to those before the first step. Errors: those of
  /// opening a session.
  virtual Status reset_states(std::uint32_t piece) = 0;
  virtual SyncMemory memory_use() const = 0;
  /// Visits all states that this rank keeps.
  virtual void visit_states(const SiteVisitor& visit) = 0;
};

struct RunnerParts {
  const Plan& plan;
  Transport& transport;
  RankTasks& compute;
  PieceMemory& memory;
  StepTensors& tensors;
  std::atomic<bool>& cancelled;  // set when a task fails, to end computing, too
  std::chrono::milliseconds timeout;
  bool has_gpu = false;  // do tasks of Lane::Cpus run at once with those of Lane::Compute?
};

class PlanRunner {
 public:
  explicit PlanRunner(const RunnerParts& parts);
  ~PlanRunner();

  /// Runs on the thread that issues exchanges, before the first task.
  using Prologue = std::function<Status()>;

  /// Begins a step; no tensor is ready yet. No other step may be under way.
  void begin(std::uint64_t step);
  /// Allows the step to read the tensor's gradient and write its update. From any thread, once a
  /// step.
  void make_ready(std::uint32_t tensor);
  /// Runs all tasks once, and issues exchanges on this thread. All tensors must be ready. After an
  /// error no task runs any more, the other ranks have been told, and no memory is in use. Errors:
  /// those of the prologue and of the tasks, named; TimedOut.
  Status run(const Prologue& prologue);
  /// The same on a thread of the runner, while tensors become ready; join waits for its end.
  /// Errors: also TimedOut (no tensor became ready for the timeout; names one).
  void start(Prologue prologue);
  Status join();
  /// Makes the step fail as if a task had failed. From any thread.
  void fail_step(const Error& error);
  bool has_failed() const;
  /// A tensor that is not ready; none if all are.
  std::optional<std::uint32_t> find_unready() const;
  /// Have all tasks ended that write the tensor's update?
  bool is_done(std::uint32_t tensor) const;
  /// Waits for those tasks. Returns true when they have ended or the step has failed, and false at
  /// once for a tensor that is not ready.
  bool wait_for(std::uint32_t tensor);

  /// Sets the order of the steps that follow. Of the tasks that may run, the one with the lowest
  /// place runs first. Exchanges follow the places, which are the same on all ranks.
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
  void let_compute(std::uint32_t index) { worker_of(index).ready.emplace(place_[index], index); }
  /// Counts down what the task waits for. Under the lock.
  void release(std::uint32_t index);
  /// Releases the tasks that wait for this one. Under the lock.
  void end_task(std::uint32_t index);
  void note_failure(std::uint32_t index, const Error& error);
  Error named(std::uint32_t index, const Error& error) const;
  /// For the log.
  std::string task_of_step(std::uint32_t index) const;

  void network_loop();
  Status issue(const Prologue& prologue);
  Status end_issuing();
  /// Fails the step if no awaited tensor has become ready for the timeout. Under the lock.
  void check_readiness();
  /// Fails the step if an exchange under way is too late. Returns the log's line about it, if it
  /// is late. Under the lock.
  std::optional<std::string> check_flights();

  /// Runs the task; prepares its tensors before, and delivers them after.
  Status work(std::uint32_t index, const std::function<Status()>& task);
  struct Worker;
  Worker& worker_of(std::uint32_t index) {
    const bool is_apart = parts_.has_gpu && task(index).lane() == Lane::Cpus;
    return is_apart ? on_cpus_ : computes_;
  }
  void compute_loop(Worker& worker);
  void compute_one(Worker& worker, std::unique_lock<std::mutex>& lock);
  /// May the next exchange begin? Under the lock.
  bool is_next_ready() const;

  /// The next exchange in the plan's order, if all its dependencies have ended.
  std::optional<std::uint32_t> next_exchange();
  bool start_one(std::uint32_t index);
  Result<Exchange> exchange_of(std::uint32_t index);
  bool test_flights();
  void wait();

  RunnerParts parts_;
  const RankPlan& own_;
  TransportRanks ranks_;                                // for tasks that are protocols
  std::vector<std::vector<std::uint32_t>> next_;        // by task: the tasks that wait for it
  std::vector<std::vector<std::uint32_t>> of_tensor_;   // by tensor: the tasks that wait for it
  std::vector<std::vector<std::uint32_t>> tensors_of_;  // by task: the tensors that it waits for
  // By tensor: the number of tasks that write its update
  std::vector<std::uint32_t> num_writers_;
  std::vector<std::uint32_t> place_;                     // by task: its place in the step's order
  std::vector<std::uint32_t> exchanges_;                 // network tasks, in order
  std::vector<std::vector<ByteRange>> sent_, received_;  // by exchange task

  using Placed = std::pair<std::uint32_t, std::uint32_t>;  // place, task
  // A thread that computes, and the tasks that it may take.
  struct Worker {
    std::priority_queue<Placed, std::vector<Placed>, std::greater<>> ready;
    std::thread thread;
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> missing_;       // by task: how many tasks and tensors it still waits for
  std::vector<bool> is_ready_;             // by tensor
  std::vector<std::uint8_t> is_prepared_;  // by tensor; owned by the lane that works on it
  std::vector<std::uint32_t> writers_left_;  // by tensor
  Worker computes_, on_cpus_;
  std::size_t num_left_ = 0, num_started_ = 0, num_computing_ = 0;
  const bool can_be_woken_;  // out of a pause
  bool is_running_ = false, is_closing_ = false;
  std::optional<Error> failure_;
  // When a tensor last became ready, a task started or ended, or a part of an exchange moved.
  Clock::time_point last_move_;
  std::uint64_t num_moves_ = 0;  // moves of the transport by then
  std::vector<Flight> flights_;
  WaitLog log_;
  std::uint64_t step_ = 0;
  std::vector<std::uint32_t> awaited_;  // by an exchange that was too late
  TaskTimes times_;
  // For steps whose exchanges a thread of the runner issues.
  Prologue prologue_;
  bool has_work_ = false;
  bool has_issued_ = false;
  Status issued_ = Ok{};
  std::thread network_thread_;  // starts with the first such step
};

}  // namespace cinch::rt
