// Gradients of all ranks become the averaged update on every rank: one rank's door to a plan that
// runs step by step over a transport.
//
//   auto session = SyncSession::open({.plan = plan, .programs = programs}, *transport);
//   session->step(gradients, updates, step);    // on all ranks
//
// or, while gradients are still being computed, in parts:
//
//   session->begin_step(step);
//   session->set_ready(3, gradient, update);    // in any order, on each rank its own
//   session->finish_step();                     // when all are ready
//
// After a step that failed on some rank all ranks have an error, their states are those of the last
// step that succeeded, and the session takes no more steps; a new one may be opened over a new
// transport. One call at a time: one that another thread makes meanwhile is an error
// (InvalidArgument) and changes nothing.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/collective/transport.h"
#include "runtime/plan/plan.h"
#include "runtime/session/loaded_program.h"
#include "runtime/sync/states/restore_states.h"
#include "runtime/sync/states/site_states.h"
#include "runtime/sync/states/state_arrays.h"
#include "runtime/sync/sync_device.h"
#include "runtime/sync/task_times.h"

namespace cinch::rt {

struct SyncOptions {
  std::shared_ptr<const Plan> plan;
  /// By codec of the plan; of a rank with a device they are not looked at.
  std::vector<std::shared_ptr<const LoadedProgram>> programs;
  /// Where this rank computes on a GPU. Ranks of one synchronisation need not be alike in this.
  std::optional<SyncDevice> device;
  std::uint32_t threads = 0;  // of this rank; 0: all of the machine
  std::uint64_t seed = 0;
  /// So long nothing may move before a step, or opening, fails: no task ends, and no part of what
  /// is exchanged comes or goes.
  std::chrono::milliseconds timeout{30000};
};

struct StepOptions {
  /// Gradients are so many times what is synchronised: a loss scale. States hold values that are
  /// not scaled, and updates are scaled again; both as f32.
  double scale = 1;
  bool is_sum = false;  // updates are the sums over ranks, not the means
  /// Where some rank's gradient is not finite, all states of all ranks stay as they were.
  bool skips_non_finite = false;
  /// The report says how far updates are from the mean, for an all-reduce of f32 more
  /// (update_errors.h). Of tensors in the host's memory.
  bool measures_errors = false;
};

struct StepOutcome {
  bool is_skipped = false;  // as StepOptions::skips_non_finite says; updates are of no use
};

class SyncSession {
 public:
  /// Checks the plan, opens sessions, and compares with the other ranks: versions, plan, tensors,
  /// programs, parameters, seed. All ranks call it. `transport` outlives the session. Errors:
  /// InvalidArgument (a plan that check_plan refuses, programs that are not the plan's, ranks that
  /// differ: on all of them, and says who has what), those of Session::open and the transport.
  static Result<std::unique_ptr<SyncSession>> open(const SyncOptions& options,
                                                   Transport& transport);
  ~SyncSession();

  /// Binds a run-time parameter of one program. What rank 0 has bound holds on all ranks from the
  /// next step on. Errors: those of Session::set_parameter; OutOfRange where a payload may then be
  /// longer than the plan has room for.
  Status set_parameter(std::uint32_t codec, std::string_view name, double value);

  /// One synchronisation; all ranks call it with the same step. `gradients` and `updates` by the
  /// plan's tensors, f32, f16 or bf16; an update may be its gradient's memory. They are the host's
  /// memory but where SyncDevice::has_tensors. On success all ranks hold the same bits. Errors name
  /// the rank, tensor and phase at fault: those of Session's calls, Cancelled (another rank failed
  /// or has gone, an earlier step failed), TimedOut, InvalidArgument (other tensors than the
  /// plan's).
  Status step(std::span<const ConstTensorView> gradients, std::span<const TensorView> updates,
              std::uint64_t step);
  Result<StepOutcome> step(std::span<const ConstTensorView> gradients,
                           std::span<const TensorView> updates, std::uint64_t step,
                           const StepOptions& options);

  /// A step in parts: exchanges run on a thread of the session's own until finish_step; nobody else
  /// uses the transport meanwhile. All ranks begin with the same options. Errors: InvalidArgument
  /// (a step is under way; see StepOptions), Cancelled (an earlier step failed).
  Status begin_step(std::uint64_t step, const StepOptions& options = {});
  /// The tensor's gradient is there; its update is written by the end of the step. Both stay where
  /// they are. `is_used`: the model gave the gradient; else it is zeros, and where no rank has used
  /// a tensor its states stay and its update is zeros. Errors: InvalidArgument (no step, no such
  /// tensor, twice, another tensor than the plan's); the step then fails on all ranks.
  Status set_ready(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update,
                   bool is_used = true);
  /// Is the tensor's update written? It may still become NaN, or zeros, by the step's end.
  bool is_done(std::uint32_t tensor) const;
  /// Waits for that, or for the step's failure; from any thread, as is_done. Errors:
  /// InvalidArgument (the tensor is not ready).
  Status wait_for(std::uint32_t tensor);
  /// The step cannot go on: finish_step gives an error on all ranks. Errors: InvalidArgument (no
  /// step).
  Status fail_step(const Error& why);
  bool is_in_step() const;
  /// Has the step failed already, so that finish_step waits for nothing more? From any thread.
  bool has_step_failed() const;
  /// Waits for all ranks; then the step has one outcome on all of them. Errors: as of step;
  /// InvalidArgument on all ranks where a tensor is not ready, which it names.
  Result<StepOutcome> finish_step();

  /// This rank cannot take the step that the others take: they get an error, and no more steps are
  /// taken here.
  Status give_up(const Error& why);

  /// Asks all ranks to end after the next step: whoever gets a signal lets the others know, and
  /// none is left waiting. From any thread.
  void ask_to_stop();
  /// Had some rank asked by the last step? The same on all ranks. From any thread.
  bool is_asked_to_stop() const;

  /// Of the last step: when each task ran, and what it moved; to be read between steps.
  const TaskTimes& times() const;
  /// The same as JSON, with bytes by tensor and memory (step_report.h); and as a timeline that
  /// opens in Perfetto (task_times.h), of this rank. Errors: InvalidArgument (a step is under way).
  Result<std::string> report() const;
  Result<std::string> trace() const;
  /// This rank's states after the last step that succeeded, as bytes (checkpoint.h). Errors: those
  /// of SiteStates.
  Result<std::vector<std::uint8_t>> save_states();
  /// Takes over what the ranks of an earlier session have saved, in any order, whatever their
  /// number and plan were; says what cannot be. All ranks call it with the same bytes, before the
  /// first step. Errors: InvalidArgument (after a step; ranks that got different bytes; saved after
  /// different steps), CorruptFile, VersionMismatch, those of the transport; states are then as
  /// before.
  Result<RestoreReport> restore_states(std::span<const std::vector<std::uint8_t>> saved);
  /// The same for this rank by itself, from what the same rank of as many saved under the same
  /// plan. Errors: InvalidArgument (also: of another rank, plan or number of ranks, whose states
  /// restore_states takes over), CorruptFile, VersionMismatch; states are then as before.
  Result<RestoreReport> restore_own_states(std::span<const std::uint8_t> saved);
  /// The tensor's states become what they were before the first step. All ranks do it between the
  /// same steps. Errors: InvalidArgument (no such tensor, a step is under way), those of opening.
  Status reset_states(std::uint32_t tensor);
  /// Every state by itself, between steps (state_arrays.h).
  Result<std::vector<StateArray>> state_arrays();
  Status set_state_array(std::size_t place, std::span<const std::uint8_t> bytes);
  /// All states that this rank keeps, between steps.
  Status visit_states(const SiteVisitor& visit);

 private:
  struct Impl;
  explicit SyncSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cinch::rt
