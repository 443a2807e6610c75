// `auto`: finds the fastest plan for these tensors on these ranks. It measures networks and
// programs, predicts all plans, and tries those that predictions cannot tell apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/planner/choose_plan.h"
#include "runtime/planner/plan_cost.h"
#include "runtime/sync/sync_session.h"

namespace cinch::rt {
// What is measured on the ranks at hand: how fast a rank encodes, decodes and adds, on CPUs or a
// GPU (by the tasks of short plans of one rank), and how long steps of whole plans take.

struct SpeedOptions {
  /// The session as the rank will open it, without plan. Its programs are needed even if a device
  /// computes.
  SyncOptions session;
  /// How many measure at once, since ranks of one machine compute at once.
  std::uint32_t copies = 1;
  double seconds = 0.5;  // about
  std::uint64_t step = 0;
};

/// Measures one codec of the session's programs. Takes pieces of several sizes from all over the
/// gradient, up to a limit, so that they are as far from the caches as in a step. `gradient` has
/// rows * cols elements, in host memory. For matrix programs and those whose tensors may not be
/// cut, only the whole is measured. Errors: those of SyncSession.
Result<CodecSpeed> measure_codec(std::uint32_t codec, ConstTensorView gradient, std::int64_t rows,
                                 std::int64_t cols, const SpeedOptions& options);

/// Measures copies of gradients from the device to pinned host memory, and back; sets `copy_out`
/// and `copy_in`. Errors: OutOfMemory, Device.
Status measure_copies(const SyncDevice& device, std::int64_t elems, CpuSpeeds& to);

/// Measures tensors that are sent as plain f32; sets `dense` and `clear`. Errors: those of
/// SyncSession.
Status measure_dense(std::int64_t elems, const SpeedOptions& options, CostInputs& to);

// Compares plans by trial: takes steps of each on its ranks and transport.

struct TrialOptions {
  SyncOptions session;          // each trial sets its plan
  std::uint64_t step = 0;       // the step that trials take, again and again
  double seconds = 1;           // time of all trials, about
  double clearly_slower = 1.3;  // times the fastest so far: slower plans are dropped
  /// As of CostInputs: steps play that backward pass.
  std::vector<double> ready_seconds;
};

/// Seconds of a step by each plan: the median of the slowest rank's times, without a session's
/// first step. All ranks call it with the same plans and options and get the same result. Each rank
/// has gradients of its own, by the plans' tensors, in host memory. Leaves no state behind. Errors:
/// those of SyncSession; the transport then takes no more exchanges.
Result<std::vector<double>> try_plans(std::span<const std::shared_ptr<const Plan>> plans,
                                      std::span<const ConstTensorView> gradients,
                                      const TrialOptions& options, Transport& transport);

struct KnownNetwork {
  NetworkModel model;
  /// By kMeasuredKinds, seconds per byte: time that exchanges take on the threads that issue them,
  /// with all ranks active, besides the time on links.
  std::array<double, kMeasuredKinds.size()> copying{};
};

/// What is known of a step's costs before programs are measured. Ranks compute on `threads` each;
/// 0: on a device.
CostInputs costs_on(const KnownNetwork& network, std::uint32_t ranks_per_machine,
                    std::uint32_t threads);
/// How many ranks of a machine compute at once, so that as many measure at once (SpeedOptions).
std::uint32_t copies_on(const CostInputs& costs);

struct AutoPlanInputs {
  PlanRequest request;                     // without plan, piece size and lengths
  SyncOptions session;                     // without plan; threads: the rank's own number, not 0
  std::vector<ConstTensorView> gradients;  // of this rank, by tensor, in host memory
  std::uint64_t step = 0;
  ChoiceSpace space;
  bool measures_network = true;         // the same on all ranks; if false, `network` is used
  std::optional<KnownNetwork> network;  // only rank 0 needs it
  double trial_seconds = 2;             // the most time for trials, about; 0: no trials
  /// As of CostInputs, by tensor: plans are predicted and tried behind that backward pass. Empty on
  /// all ranks or on none.
  std::vector<double> ready_seconds;
};

struct AutoPlan {
  PlanRequest request;
  std::optional<PlanChoice> choice;  // on rank 0; none if there is no choice
};

/// False if a program has a `sync` whose collectives are only known as it runs: its time cannot be
/// predicted, and it runs under every plan.
bool has_choice(const PlanRequest& request);
AutoPlan without_choice(PlanRequest request);

/// Chooses the plan. All ranks call it and get the same request. Takes some seconds and leaves no
/// state behind. Errors: those of measuring and of SyncSession, and Cancelled if another rank
/// failed; the transport then takes no more exchanges.
Result<AutoPlan> choose_auto_plan(const AutoPlanInputs& inputs, Transport& transport);

}  // namespace cinch::rt
