// Predicts how long a step by a plan takes. It runs the tasks on the lanes of every rank in the
// order in which PlanRunner would, with measured times of network and programs.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "runtime/plan/plan.h"
#include "runtime/planner/network/network_model.h"

namespace cinch::rt {
/// Seconds of a call by its number of elements: straight lines between measured sizes, continued
/// before the first and after the last. With one measured size, time is proportional to the number
/// of elements.
struct CostCurve {
  std::vector<Sample> samples;  // by size
  double at(double elems) const;
};

/// Speed of one program, or of plain f32, on as many threads as a rank has.
struct CodecSpeed {
  CostCurve encode, decode, decode_add, finish;
  CostCurve spread, join;  // for a transport that adds payloads
  // The share of a payload's bound that is used, if payloads are shorter than their bounds
  double used_share = 1;
  std::vector<CostCurve> parts;  // of a `sync`
};

/// The CPUs of ranks that compute on a GPU, for tensors that are encoded there.
struct CpuSpeeds {
  std::vector<CodecSpeed> codecs;  // by the plan's codecs
  CodecSpeed dense;
  CostCurve clear;
  CostCurve copy_out, copy_in;  // by elements of f32
  double threads = 1;           // of a rank
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
  virtual Status send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes,
                      std::uint64_t id) = 0;
  /// When the next of them arrive if nothing else is sent before; infinity: none is on its way.
  virtual double next_arrival() = 0;
  /// Goes on to a time that is not behind next_arrival, and appends what arrives there.
  virtual void advance(double now, std::vector<std::uint64_t>& arrived) = 0;
};

struct CostInputs {
  NetworkModel network;
  std::vector<CodecSpeed> codecs;  // by the plan's codecs
  CodecSpeed dense;
  CostCurve clear;
  /// By kMeasuredKinds: time that an exchange takes on the thread that issues it, alone on a core,
  /// by the bytes that the rank sends. A rank's exchanges take this time one after the other.
  std::array<Line, kMeasuredKinds.size()> exchange_work{};
  /// Ranks are numbered machine by machine, and share their machine's cores; each computes on
  /// `threads`.
  std::uint32_t ranks_per_machine = 1;
  double cores = 1, threads = 1;
  /// Do ranks encode on the device that computes gradients? The backward pass then stands still
  /// while they do, but goes on while they wait for data. Their `threads` are 0.
  bool is_on_device = false;
  std::optional<CpuSpeeds> on_cpus;  // of such ranks; none: nothing is encoded there
  /// Links of their own for each simulation of a step; empty: those of `network`.
  std::function<std::unique_ptr<SimulatedLinks>()> make_links;
  /// By rank: how many times as long as the others it computes. Empty: all are alike.
  std::vector<double> slowness;
  /// By tensor: seconds from the step's begin until its gradient is ready, on every rank, as in a
  /// backward pass that takes no time from other work. Empty: all are ready at the begin.
  std::vector<double> ready_seconds;
};

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
/// By rank and task of the plan.
using PlanSpans = std::vector<std::vector<TaskSpan>>;

/// Predicts the cost, and, where `spans` is given, when each task runs. The plan has passed
/// check_plan. A collective ends when all ranks have joined
/// and their bytes have arrived; messages and parts of collectives share the links of both sides.
/// With ready times, tasks follow the order of steps in parts (order_of_tasks), and the time is
/// that from the step's begin on. Errors: InvalidArgument (a `sync` that is a single task, since a
/// plan does not tell its exchanges; another number of ranks than the network's, or of ready times
/// than tensors).
Result<PlanCost> estimate_cost(const Plan& plan, const CostInputs& inputs,
                               PlanSpans* spans = nullptr);

/// By tensor: when the last of its tasks ends, on any rank.
std::vector<double> tensor_ends(const Plan& plan, const PlanSpans& spans);

// Runs tasks with known times as PlanRunner would. Each lane of a rank runs one task at a time, the
// first that is ready. Exchanges begin in order as soon as they are ready, and overlap.

struct SimulatedTask {
  TaskKind kind = TaskKind::Encode;
  Lane lane = Lane::Compute;
  std::vector<std::uint32_t> after;
  double seconds = 0;        // of computing; for an exchange: the time that it takes on its thread
  double ready_seconds = 0;  // it does not begin before
  ExchangeKind exchange = ExchangeKind::Send;
  std::uint32_t peer = 0;
  std::vector<double> sent_bytes;  // by rank
  Line line;
  bool is_within = false;  // a message over the links within a machine
  double total_bytes() const { return std::accumulate(sent_bytes.begin(), sent_bytes.end(), 0.0); }
};

/// A rank's tasks with their times, in the plan's order. Errors: as of estimate_cost.
Result<std::vector<SimulatedTask>> simulated_tasks(const Plan& plan, std::uint32_t rank,
                                                   const CostInputs& inputs);
/// How many bytes of a slot of the rank's exchange are in use.
double slot_bytes(const Plan& plan, std::uint32_t rank, const Task& exchange, std::uint32_t slot,
                  const CostInputs& inputs);

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

  void add_rank(std::vector<SimulatedTask> tasks);
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
    double left = 0;  // seconds, alone on its cores
  };
  struct Rank {
    std::vector<SimulatedTask> tasks;
    std::vector<Indices> next;
    std::vector<std::size_t> missing;
    // By Lane; that of the network has the thread that issues exchanges, and none is ready there.
    std::array<std::priority_queue<std::uint32_t, Indices, std::greater<>>, kNumLanes> ready;
    std::array<Work, kNumLanes> work;
    Indices exchanges;
    std::size_t num_started = 0, num_ended = 0, num_collectives = 0;
    // On a device: tasks by when their gradients are ready, and how far the backward pass is.
    std::vector<std::pair<double, std::uint32_t>> arrivals;
    std::size_t num_arrived = 0;
    double backward = 0;
    LinkTime out, in;
    LinkTime out_within, in_within;  // links within the machine
    std::size_t num_in_flight = 0;
    double in_flight_since = 0;
    PlanCost cost;
    std::vector<TaskSpan> spans;
  };
  struct Event {
    double time = 0;
    std::uint32_t rank = 0, task = 0;
    friend bool operator>(const Event& a, const Event& b) {
      return std::tie(a.time, a.rank, a.task) > std::tie(b.time, b.rank, b.task);
    }
  };
  // One collective of all ranks.
  struct Meeting {
    std::vector<double> end;  // by rank: when its last byte has been sent or received
    Indices tasks;            // by rank
    std::size_t num_joined = 0;
    Indices num_on_way;  // by rank, over links_: bytes from it and to it that have not arrived
  };
  // Bytes over links_: of a message, or of a collective.
  struct Transfer {
    std::uint32_t from = 0, to = 0;
    std::size_t number = 0;  // of the message on its way, or of the meeting
    bool is_message = false;
  };
  struct Sent {
    std::uint32_t task = 0;
    double arrival = 0;
  };
  // Messages from one rank to another that one side has begun.
  struct Way {
    std::deque<Sent> sent;
    std::deque<std::uint32_t> received;
    std::size_t num_matched = 0;
  };

  Lane lane_of(const SimulatedTask& task) const;
  bool is_on_device() const { return cores_.threads_beside_device.has_value(); }
  static Work& on(Rank& rank, Lane lane) { return rank.work[static_cast<std::size_t>(lane)]; }
  static const Work& on(const Rank& rank, Lane lane) {
    return rank.work[static_cast<std::size_t>(lane)];
  }
  static auto& ready_on(Rank& rank, Lane lane) {
    return rank.ready[static_cast<std::size_t>(lane)];
  }
  /// When the backward pass makes the next gradient ready, if nothing else begins.
  double next_arrival(const Rank& rank) const;
  void take_arrivals(std::uint32_t rank);
  void start_tasks(std::uint32_t rank);
  void start_work(std::uint32_t rank, Lane lane, std::uint32_t task);
  void start_exchange(std::uint32_t rank, std::uint32_t task);
  void join(std::uint32_t rank, std::uint32_t task);
  /// The same over links_.
  void join_over_links(std::uint32_t rank, const SimulatedTask& task, std::size_t number);
  void end_meeting(std::size_t number, std::uint32_t rank);
  void send_over_links(std::uint64_t bytes, const Transfer& transfer);
  void arrive(const Transfer& transfer);
  void match(std::uint32_t from, std::uint32_t to);
  double pass(std::uint32_t from, std::uint32_t to, const SimulatedTask& task);
  void end_task(std::uint32_t rank, std::uint32_t task);
  double threads_of(Lane lane) const;
  /// Speed of each rank on the machine, as a share of its speed alone.
  double speed(std::uint32_t machine) const;
  void release(std::uint32_t rank, std::uint32_t task);
  double next_time();
  void advance_to(double time);
  PlanCost result() const;

  const SharedCores cores_;
  std::vector<Rank> ranks_;
  std::vector<Way> ways_;
  std::vector<Meeting> meetings_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_, arrivals_;
  std::vector<double> busy_threads_;  // by machine
  double now_ = 0;
  std::unique_ptr<SimulatedLinks> links_;
  std::vector<Transfer> transfers_;  // by id
  std::vector<std::uint64_t> arrived_;
  Status status_ = Ok{};  // of sending over links_
};

}  // namespace cinch::rt
