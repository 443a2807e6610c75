// Runs tasks with known times as PlanRunner would. Each lane of a rank runs one task at a time, the
// first that is ready. Exchanges begin in order as soon as they are ready, and overlap.
//
// A rank here may stand for many that behave alike: then its flows say to how many each of them
// sends, and SimulatedLinks knows how many of them share a link.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/planner/network/network_model.h"

namespace cinch::rt {

/// Each figure is the maximum over ranks. The parts overlap.
struct PlanCost {
  double seconds = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;   // decoding and all other work that does not encode
  double network_seconds = 0;  // while at least one exchange is under way
};

/// When a task runs, in seconds from the step's begin.
struct TaskSpan {
  double begin = 0, end = 0;
  double sent_bytes = 0;  // to other ranks
};

/// Whom a flow goes to, of the ranks that its receiver stands for.
enum class FlowScope : std::uint8_t {
  All,            // each but the sender itself
  OwnMachine,     // those on the sender's machine
  OtherMachines,  // those on all others
  Next            // the one that follows the sender in a circle
};

/// Bytes to one rank, or to each of those that it stands for.
struct SimulatedFlow {
  std::uint32_t to = 0;
  FlowScope scope = FlowScope::All;
  double bytes = 0;   // to each
  double copies = 1;  // so many such flows, to each
  double count = 1;   // receivers of each sender, for sums of bytes
};

/// Links that the bytes of a simulated step share, in place of the links by sender and receiver
/// that PlanSimulation has itself. Times are seconds from the step's begin.
class SimulatedLinks {
 public:
  SimulatedLinks() = default;
  SimulatedLinks(const SimulatedLinks&) = delete;
  SimulatedLinks& operator=(const SimulatedLinks&) = delete;
  virtual ~SimulatedLinks() = default;

  /// Sends bytes, more than none, at the time that advance has come to. `id` is told when the last
  /// one has arrived. Errors: InvalidArgument (there is no way between the ranks).
  virtual Status send(std::uint32_t from, const SimulatedFlow& flow, std::uint64_t id) = 0;
  /// When the next of them arrive if nothing else is sent before; infinity: none is on its way.
  virtual double next_arrival() = 0;
  /// Goes on to a time that is not behind next_arrival, and appends what arrives there.
  virtual void advance(double now, std::vector<std::uint64_t>& arrived) = 0;
};

struct SimulatedTask {
  TaskKind kind = TaskKind::Encode;
  Lane lane = Lane::Compute;
  std::vector<std::uint32_t> after;
  double seconds = 0;        // of computing; for an exchange: the time that it takes on its thread
  std::uint32_t rounds = 1;  // of a collective over links, each behind the one before
  double units = 1;          // tasks of equal length, one behind the other, that it stands for
  double ready_seconds = 0;  // it does not begin before
  ExchangeKind exchange = ExchangeKind::Send;
  std::uint32_t peer = 0;
  FlowScope scope = FlowScope::All;  // of a message that is received
  bool is_left_out = false;          // a message that another one stands for
  /// Of a collective: to all others, in the order of their numbers behind the rank's own.
  std::vector<SimulatedFlow> flows;
  Line line;
  bool is_within = false;  // a message over the links within a machine
  /// Of one rank.
  double sent_bytes() const;
};

/// Tasks that several ranks may have.
struct SimulatedTasks {
  explicit SimulatedTasks(std::vector<SimulatedTask> all);
  std::vector<SimulatedTask> tasks;
  std::vector<std::vector<std::uint32_t>> next;
  std::vector<std::uint32_t> exchanges;
};

/// If ranks of a machine compute at once on more threads than it has cores, they slow down.
struct SharedCores {
  std::uint32_t ranks_per_machine = 1;
  double cores = 1, threads = 1;
  /// Of Lane::Cpus beside a device; none: there is no device, and all lanes that compute are one.
  std::optional<double> threads_beside_device = {};
};

class PlanSimulation {
 public:
  /// `links`: instead of the tasks' lines; may be null.
  explicit PlanSimulation(const SharedCores& cores, std::unique_ptr<SimulatedLinks> links = nullptr)
      : cores_(cores), links_(std::move(links)) {}

  /// `shift`: what is added to the numbers of the ranks that the tasks name, around the circle.
  void add_rank(std::shared_ptr<const SimulatedTasks> tasks, std::uint32_t shift = 0);
  /// Runs the simulation, once. Errors: InvalidArgument (tasks that never end).
  Result<PlanCost> run();
  /// Of the rank's tasks, behind run.
  const std::vector<TaskSpan>& spans(std::uint32_t rank) const { return ranks_[rank].spans; }

 private:
  using Indices = std::vector<std::uint32_t>;
  // The work of one thread.
  struct Work {
    bool is_running = false;
    std::uint32_t task = 0;
    std::uint64_t number = 0;  // of the work, in the order of their begins
    double since = 0;          // when it has begun
    double begin = 0;          // what its machine had done then
    double units_after = 0;    // units that are left when it ends
  };
  struct Rank {
    std::shared_ptr<const SimulatedTasks> of;
    std::uint32_t shift = 0;
    std::vector<std::uint32_t> missing;
    // By Lane; that of the network has the thread that issues exchanges, and none is ready there.
    std::array<std::priority_queue<std::uint32_t, Indices, std::greater<>>, kNumLanes> ready;
    std::array<Work, kNumLanes> work;
    std::unordered_map<std::uint32_t, double> units_left;  // of tasks that were interrupted
    // Of collectives with several rounds: the meeting that comes next, and how many then.
    std::unordered_map<std::uint32_t, std::pair<std::size_t, std::uint32_t>> rounds_left;
    std::size_t num_started = 0, num_ended = 0, num_collectives = 0;
    // On a device: tasks by when their gradients are ready, and how far the backward pass is.
    std::vector<std::pair<double, std::uint32_t>> arrivals;
    std::size_t num_arrived = 0;
    double backward = 0, backward_since = 0;
    LinkTime out, in;
    LinkTime out_within, in_within;  // links within the machine
    std::size_t num_in_flight = 0;
    double in_flight_since = 0;
    PlanCost cost;
    std::vector<TaskSpan> spans;
    const SimulatedTask& task(std::uint32_t index) const { return of->tasks[index]; }
  };
  // Ranks that share cores. All their work advances at one rate.
  struct Machine {
    struct End {
      double done = 0;  // what the machine has done then
      std::uint32_t rank = 0;
      Lane lane = Lane::Compute;
      std::uint64_t work = 0;
      friend bool operator>(const End& a, const End& b) {
        return std::tie(a.done, a.rank, a.lane) > std::tie(b.done, b.rank, b.lane);
      }
    };
    double done = 0;  // seconds of work, of each thread, up to `since`
    double since = 0, rate = 1, busy_threads = 0;
    std::uint64_t version = 0;
    std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  };
  struct Event {
    double time = 0;
    std::uint32_t rank = 0, task = 0;
    friend bool operator>(const Event& a, const Event& b) {
      return std::tie(a.time, a.rank, a.task) > std::tie(b.time, b.rank, b.task);
    }
  };
  using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;
  // The next end of work on a machine; it counts if the machine has that version still.
  struct MachineEvent {
    double time = 0;
    std::uint32_t machine = 0;
    std::uint64_t version = 0;
    friend bool operator>(const MachineEvent& a, const MachineEvent& b) {
      return std::tie(a.time, a.machine) > std::tie(b.time, b.machine);
    }
  };
  // One collective of all ranks.
  struct Meeting {
    std::vector<double> end;  // by rank: when its last byte has been sent or received
    Indices tasks;            // by rank
    std::size_t num_joined = 0;
    Indices num_on_way;  // by rank, over links_: flows from it and to it that have not arrived
  };
  // Bytes over links_: of a message, or of a collective.
  struct Transfer {
    std::uint32_t from = 0, to = 0;
    std::size_t number = 0;  // of the message, or of the meeting
    bool is_message = false;
    FlowScope scope = FlowScope::All;
  };
  struct Sent {
    std::uint32_t task = 0;
    double arrival = 0;
  };
  // Messages from one rank to another, in the order in which each side has begun them: the k-th
  // that is sent is the k-th that is received.
  struct Way {
    std::vector<Sent> sent;
    std::vector<std::uint32_t> received;
  };

  Lane lane_of(const SimulatedTask& task) const;
  bool is_on_device() const { return cores_.threads_beside_device.has_value(); }
  static Work& on(Rank& rank, Lane lane) { return rank.work[static_cast<std::size_t>(lane)]; }
  static auto& ready_on(Rank& rank, Lane lane) {
    return rank.ready[static_cast<std::size_t>(lane)];
  }
  std::uint32_t other(std::uint32_t rank, std::uint32_t number) const {
    return static_cast<std::uint32_t>((std::uint64_t{number} + ranks_[rank].shift) % ranks_.size());
  }
  Machine& machine_of(std::uint32_t rank) { return machines_[rank / cores_.ranks_per_machine]; }
  void settle(Machine& machine) const;
  /// Of the machine's next end of work.
  void schedule(std::uint32_t machine);
  /// Of the rank's next gradient, on a device.
  void schedule_backward(std::uint32_t rank);
  bool is_late(const Event& event) const;
  void take_arrivals(std::uint32_t rank);
  void start_tasks(std::uint32_t rank);
  void start_work(std::uint32_t rank, Lane lane, std::uint32_t task);
  /// Lets an earlier task run when the unit under way is over.
  void interrupt(std::uint32_t rank, Lane lane);
  void end_work(std::uint32_t rank, Lane lane);
  void start_exchange(std::uint32_t rank, std::uint32_t task);
  void join(std::uint32_t rank, std::uint32_t task);
  void meet(std::uint32_t rank, std::uint32_t task, std::size_t number);
  /// The same over links_.
  void join_over_links(std::uint32_t rank, const SimulatedTask& task, std::size_t number);
  void end_meeting(std::size_t number, std::uint32_t rank);
  void send_over_links(const SimulatedFlow& flow, const Transfer& transfer);
  void arrive(const Transfer& transfer);
  Way& way(std::uint32_t from, std::uint32_t to, FlowScope scope);
  /// Ends a message on both sides if it has arrived and is waited for.
  void match(std::uint32_t from, std::uint32_t to, FlowScope scope, std::size_t number);
  double pass(std::uint32_t from, const SimulatedFlow& flow, const SimulatedTask& task);
  void end_task(std::uint32_t rank, std::uint32_t task);
  double threads_of(Lane lane) const;
  void release(std::uint32_t rank, std::uint32_t task);
  double next_time();
  void advance_to(double time);
  PlanCost result() const;

  const SharedCores cores_;
  std::vector<Rank> ranks_;
  std::vector<Machine> machines_;
  std::unordered_map<std::uint64_t, Way> ways_;
  std::deque<Meeting> meetings_;
  Events events_, arrivals_, backward_;
  std::priority_queue<MachineEvent, std::vector<MachineEvent>, std::greater<>> ends_;
  double now_ = 0;
  std::uint64_t num_works_ = 0;
  std::unique_ptr<SimulatedLinks> links_;
  std::vector<Transfer> transfers_;  // by id
  std::vector<std::uint64_t> arrived_;
  Status status_ = Ok{};  // of sending over links_
};

}  // namespace cinch::rt
