// Predicts how long a step by a plan takes. It runs the tasks on the lanes of every rank in the
// order in which PlanRunner would, with measured times of network and programs.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/plan/plan.h"
#include "runtime/planner/network/network_model.h"
#include "runtime/planner/simulation/plan_simulation.h"
#include "runtime/planner/simulation/stand_ins.h"

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
  /// The plan's, with links that know how many ranks each simulated one stands for. `slowness` is
  /// then by written rank. Null: ranks stand for themselves.
  std::shared_ptr<const StandIns> stand_ins;
  /// Do the messages of a round leave when the last of them can, and does what needs one of them
  /// wait for all that come in? An upper bound, under which ranks that differ only in the order of
  /// their peers are alike.
  bool joins_rounds = false;
  /// By tensor: seconds from the step's begin until its gradient is ready, on every rank, as in a
  /// backward pass that takes no time from other work. Empty: all are ready at the begin.
  std::vector<double> ready_seconds;
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

/// Errors: as of estimate_cost, but for `sync`.
Status check_cost_inputs(const Plan& plan, const CostInputs& inputs);
/// A rank's tasks with their times, in the plan's order. Errors: as of estimate_cost.
Result<std::vector<SimulatedTask>> simulated_tasks(const Plan& plan, std::uint32_t rank,
                                                   const CostInputs& inputs);
/// How many bytes of a slot of the rank's exchange are in use.
double slot_bytes(const Plan& plan, std::uint32_t rank, const Task& exchange, std::uint32_t slot,
                  const CostInputs& inputs);

}  // namespace cinch::rt
