// One rank of a synchronisation, which turns the gradients of all ranks into the averaged update on
// every rank. It runs a plan step by step over a transport.
//
//   auto session = SyncSession::open({.plan = plan, .programs = programs}, *transport);
//   session->step(gradients, updates, step);    // on all ranks
//
// or in parts, while gradients are still being computed:
//
//   session->begin_step(step);
//   session->set_ready(3, gradient, update);    // in any order, on each rank its own
//   session->finish_step();                     // when all are ready
//
// If a step fails on some rank, all ranks get an error, their states are those of the last step
// that succeeded, and the session takes no more steps. If a rank dies in the exchange that ends a
// step, that step may have succeeded on some ranks: the others fail in it, and these in the next
// one. A new session may be opened over a new transport. A session takes one call at a time: a call
// that another thread makes meanwhile returns InvalidArgument and changes nothing.
#pragma once
#include <memory>
#include <string_view>

#include "runtime/call/list_call.h"
#include "runtime/collective/transport.h"
#include "runtime/session/loaded_program.h"
#include "runtime/sync/states/restore_states.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {

/// The device's programs, by codec of the plan, beside SyncOptions::programs, which are for CPUs.
/// Whatever shares the device outlives the session.
struct SyncDevice : GpuQueueOptions {
  /// Do gradients and updates lie in the device's memory, ready in the stream's order? Otherwise
  /// they are copied there and back.
  bool has_tensors = false;
};

struct SyncOptions {
  std::shared_ptr<const Plan> plan;
  /// By codec of the plan. If the rank has a device, only plans need them that encode tensors on
  /// CPUs (PlanTensor::on_cpus).
  std::vector<std::shared_ptr<const LoadedProgram>> programs;
  /// The GPU that this rank computes on, if it uses one. Other ranks may use other devices.
  std::optional<SyncDevice> device;
  std::uint32_t threads = 0;  // of this rank; 0: all of the machine
  std::uint64_t seed = 0;
  /// The number of ranks on each machine, which programs know as `machine_ranks`, also those that
  /// the plan was made with. 0: all ranks are on one.
  std::uint32_t machine_ranks = 0;
  /// A step, or opening, fails after this long without progress: no task ends, and no part of an
  /// exchange is sent or received. It is long, since a rank may read data or write a checkpoint
  /// before its next step; a rank whose process ends is noticed without it.
  std::chrono::milliseconds timeout{300000};
};

struct StepOptions {
  /// A loss scale: gradients are divided by it, and updates multiplied by it, as f32. States hold
  /// values that are not scaled.
  double scale = 1;
  bool is_sum = false;  // updates are the sums over ranks, not the means
  /// If a gradient of some rank is not finite, all states of all ranks stay as they were.
  bool skips_non_finite = false;
  /// The report says how far updates are from the mean. That takes one more all-reduce of f32
  /// (sync_session_impl.h). Only for tensors in host memory.
  bool measures_errors = false;
};

struct StepOutcome {
  bool is_skipped = false;  // StepOptions::skips_non_finite applied; the updates are of no use
};

class SyncSession {
 public:
  /// Checks the plan, opens sessions, and compares versions, plan, tensors, programs, parameters
  /// and seed with the other ranks. All ranks call it. `transport` outlives the session. Errors:
  /// InvalidArgument (a plan that check_plan rejects, programs that are not the plan's; ranks that
  /// differ: on all of them, and says who has what), those of Session::open and the transport.
  static Result<std::unique_ptr<SyncSession>> open(const SyncOptions& options,
                                                   Transport& transport);
  ~SyncSession();

  /// Binds a run-time parameter of one program. The values of rank 0 hold on all ranks from the
  /// next step on. Errors: those of Session::set_parameter; OutOfRange (a payload could be longer
  /// than its room in the plan).
  /// A scalar `input` of a program is set in the same way, before each step.
  Status set_parameter(std::uint32_t codec, std::string_view name, double value);
  /// Sets an array that the tensor's program takes as an `input`, for the step that begins next or
  /// is under way, before the tensor is ready. It lies where gradients lie, has the tensor's
  /// elements (f32, f16 or bf16), is the same on all ranks, and stays in place until the step ends.
  /// A tensor that is sent as f32 takes any input and needs none. Errors: InvalidArgument (no such
  /// tensor or input, another length or type); nothing changes then.
  Status set_input(std::uint32_t tensor, std::string_view name, const ConstTensorView& array);

  /// Sets all inputs for a measurement: numbers of their ranges, and for arrays what is given, by
  /// tensor. Errors: those of set_input.
  Status make_up_inputs(std::span<const ConstTensorView> arrays);

  /// Synchronises once. All ranks call it with the same step. `gradients` and `updates` are by the
  /// plan's tensors: f32, f16 or bf16; an update may be its gradient's memory. They lie in host
  /// memory unless SyncDevice::has_tensors. After success all ranks hold the same bits. Errors name
  /// the rank, tensor and phase at fault: those of Session's calls, Cancelled (another rank failed
  /// or left, an earlier step failed), TimedOut, InvalidArgument (other tensors than the plan's),
  /// CheckFailed (ranks have different updates).
  Status step(std::span<const ConstTensorView> gradients, std::span<const TensorView> updates,
              std::uint64_t step);
  Result<StepOutcome> step(std::span<const ConstTensorView> gradients,
                           std::span<const TensorView> updates, std::uint64_t step,
                           const StepOptions& options);

  /// Begins a step in parts. A thread of the session runs exchanges until finish_step; nobody else
  /// may use the transport meanwhile. All ranks begin with the same options. Errors:
  /// InvalidArgument (a step is under way; see StepOptions), Cancelled (an earlier step failed).
  Status begin_step(std::uint64_t step, const StepOptions& options = {});
  /// Tells that the tensor's gradient is complete; its update is written by the end of the step.
  /// Both arrays stay in place. `is_used`: the model computed the gradient; otherwise it is zeros.
  /// If no rank has used a tensor, its states stay and its update is zeros. Errors: InvalidArgument
  /// (no step, no such tensor, twice, another tensor than the plan's); the step then fails on all
  /// ranks.
  Status set_ready(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update,
                   bool is_used = true);
  /// Is the tensor's update written? It may still become NaN, or zeros, by the step's end.
  bool is_done(std::uint32_t tensor) const;
  /// Waits until the update is written or the step fails. From any thread, as is_done. Errors:
  /// InvalidArgument (the tensor is not ready).
  Status wait_for(std::uint32_t tensor);
  /// Makes the step fail: finish_step returns an error on all ranks. Errors: InvalidArgument (no
  /// step).
  Status fail_step(const Error& why);
  bool is_in_step() const;
  /// Has the step already failed? finish_step then waits for nothing more. From any thread.
  bool has_step_failed() const;
  /// Waits for all ranks and ends the step with one outcome on all of them. Errors: those of step;
  /// InvalidArgument on all ranks (a tensor is not ready; names it).
  Result<StepOutcome> finish_step();

  /// Ends the session because this rank cannot take the step that the others take: the others get
  /// an error, and no more steps are taken here.
  Status give_up(const Error& why);

  /// Asks all ranks to end after the next step, so that a rank that gets a signal leaves no other
  /// rank waiting. From any thread.
  void ask_to_stop();
  /// Had some rank asked by the end of the last step? The same on all ranks. From any thread.
  bool is_asked_to_stop() const;

  /// When each task of the last step ran, and what it moved. Read this between steps.
  const TaskTimes& times() const;
  /// This rank's last step as JSON, with bytes by tensor and memory (task_facts.h), and as a
  /// timeline that opens in Perfetto (task_facts.h). Errors: InvalidArgument (a step is under way).
  Result<std::string> report() const;
  Result<std::string> trace() const;
  /// This rank's states after the last step that succeeded, as bytes (checkpoint.h). If a step has
  /// failed here and may have succeeded elsewhere, also those after that step. Errors: those
  /// of SiteStates.
  Result<std::vector<std::uint8_t>> save_states();
  /// Restores the states that the ranks of an earlier session saved, in any order, whatever their
  /// number and plan; reports what could not be restored. Of a step that succeeded on some ranks
  /// only, it takes the states after that step. All ranks call it with the same bytes,
  /// between the same steps; the step after is that of the checkpoint. After an error states are as
  /// before. Errors: InvalidArgument (a step is under way, or has failed; ranks that got different
  /// bytes; saved after different steps), CorruptFile, VersionMismatch, those of the transport.
  Result<RestoreReport> restore_states(std::span<const std::vector<std::uint8_t>> saved);
  /// Restores this rank's states alone, between steps, from what the same rank saved under the same
  /// plan and number of ranks. After an error states are as before. Errors: InvalidArgument (also:
  /// saved by another rank, plan or number of ranks; use restore_states), CorruptFile,
  /// VersionMismatch.
  Result<RestoreReport> restore_own_states(std::span<const std::uint8_t> saved);
  /// Sets the tensor's states back to those before the first step. All ranks call it between the
  /// same steps. Errors: InvalidArgument (no such tensor, a step is under way), those of opening.
  Status reset_states(std::uint32_t tensor);
  /// Every state as an array of its own, between steps (restore_states.h).
  Result<std::vector<StateArray>> state_arrays();
  Status set_state_array(std::size_t place, std::span<const std::uint8_t> bytes);
  /// Visits all states that this rank keeps, between steps.
  Status visit_states(const SiteVisitor& visit);

 private:
  struct Impl;
  explicit SyncSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cinch::rt
