// The inside of a session that synchronises.
#pragma once

#include "runtime/core/use_flag.h"
#include "runtime/exec/task_runner.h"
#include "runtime/sync/plan_runner.h"
#include "runtime/sync/sync_session.h"

namespace cinch::rt {
// The records that ranks send one another when a step ends. All ranks gather all records in one
// exchange. From them every rank decides in the same way how the step ends.

class StepRecords {
 public:
  /// `plan` outlives this.
  StepRecords(const Plan& plan, std::uint32_t rank);

  // ---- this rank's ----
  /// `options`: a digest of the step's options. `next_step`: one more than the step that this
  /// rank's states come from.
  void begin(std::uint64_t step, std::uint64_t options, std::uint64_t next_step);
  void ask_to_stop();
  /// UpdateDigests::of_all.
  void set_updates(std::uint64_t digest);
  void note_non_finite();
  /// Notes that this rank's model used the tensor and computed its gradient.
  void note_used(std::uint32_t tensor);
  void set_outcome(std::size_t protocol, const PartOutcome& outcome);
  /// Pieces whose programs run in parts; `protocol` is an index into this list.
  const std::vector<std::uint32_t>& protocols() const { return protocols_; }

  /// The exchange that gathers the records; this outlives it.
  Exchange exchange();

  // ---- those of all ranks, after the exchange ----
  /// Errors: InvalidArgument (ranks at different steps, with different options, or with states of
  /// different steps).
  Status check_steps() const;
  bool is_any_asking_to_stop() const;
  bool is_any_non_finite() const;
  /// Do digests of updates differ between ranks that have one?
  bool do_updates_differ() const;
  bool is_used_anywhere(std::uint32_t tensor) const;
  JointOutcome outcome(std::size_t protocol);

 private:
  std::uint64_t word(std::uint32_t rank, std::size_t index) const;
  bool has_flag(std::uint64_t flag) const;
  Status check_states() const;

  const Plan& plan_;
  std::uint32_t rank_;
  std::vector<std::uint32_t> protocols_;
  // One rank's record: step, options, flags below the step of states, digest of updates, outcomes
  // of protocols two to a word, used tensors 64 to a word.
  std::size_t first_outcome_ = 0, first_used_ = 0, words_ = 0;
  std::vector<std::uint64_t> own_, all_;
  std::vector<ByteRange> parts_;
  std::vector<PartOutcome> by_rank_;  // outcomes of one protocol; kept to reuse its memory
};

// Measures how far the updates of a step are from the mean (or the sum) of the ranks' gradients. It
// takes one more all-reduce of f32, so it runs only if the user asks for it.

class UpdateErrors {
 public:
  /// `plan` outlives this.
  UpdateErrors(const Plan& plan, std::uint32_t rank, std::uint32_t threads);

  /// Forgets the last step's errors.
  void begin();
  /// Copies the gradient, since its update may overwrite it. Errors: OutOfMemory.
  Status keep(std::uint32_t tensor, const ConstTensorView& gradient);
  /// Measures, when all updates are written. All ranks call it, with all tensors kept. Errors:
  /// those of the transport.
  Status measure(std::span<const TensorView> updates, bool is_sum, Transport& transport,
                 std::chrono::milliseconds timeout);

  /// By tensor: |update - mean| / |mean|, as Euclidean norms over the elements of this rank's
  /// update. NaN if the mean is zeros and the update is not, or if either is not finite. Empty if
  /// the last step was not measured.
  std::span<const double> values() const { return values_; }
  std::size_t memory_bytes() const;

 private:
  Status add_up(std::span<float> values, Transport& transport, std::chrono::milliseconds timeout);
  Result<double> error_of(std::uint32_t tensor, const TensorView& update, double divisor);

  const Plan& plan_;
  const std::uint32_t rank_, threads_;
  std::unique_ptr<TaskRunner> runner_;  // made in the first step that is measured
  std::vector<AlignedBuffer> kept_;     // by tensor: f32 of its gradient, later the sum over ranks
  AlignedBuffer update_;                // f32 of one update
  std::vector<double> values_;
};

struct SyncSession::Impl {
  Impl(SyncOptions opts, Transport& to) : options(std::move(opts)), transport(to) {}
  /// Stops the threads of a step that is under way before their data is destroyed.
  ~Impl() { runner.reset(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // ---- sync_session.cpp ----
  Status start();
  void find_images();
  Result<std::unique_ptr<ComputeDevice>> open_device();
  Status open_compute();
  Status check_parts() const;
  Status check_carriers() const;
  /// Does this rank, which has a GPU, encode tensors on its CPUs?
  bool offloads() const;
  Status check_offload() const;
  void find_inputs();
  Status set_input(std::uint32_t tensor, std::string_view name, const ConstTensorView& array);
  /// Errors: InvalidArgument, naming the tensor and the first input without a value.
  Status check_inputs(std::uint32_t tensor) const;
  std::vector<CommonFact> common_facts() const;
  /// The codec's values with one of them changed. Errors: those of SyncSession::set_parameter.
  Result<std::vector<double>> values_with(std::uint32_t codec, std::string_view name,
                                          double value) const;
  /// The codec that carries the codec's sums, if it has the parameter.
  std::optional<std::uint32_t> carrier_with(std::uint32_t codec, std::string_view parameter) const;
  Result<RestoreReport> restore_states(std::span<const std::vector<std::uint8_t>> saved);
  Result<RestoreReport> restore_own(std::span<const std::uint8_t> saved);
  /// `apart`: of tensors_apart, of all ranks.
  Result<RestoreReport> take_over(std::span<const RankCheckpoint> saved,
                                  std::span<const std::uint32_t> apart);
  RankCheckpoint checkpoint() const;
  /// By codec.
  std::vector<StatesFollow> states_follow() const;
  /// Errors: InvalidArgument (a step is under way, or has failed).
  Status check_between_steps() const;
  void give_up(const Error& why);

  // ---- sync_step.cpp ----
  /// `in_parts`: a thread of the runner issues the exchanges.
  Status begin(std::uint64_t step, const StepOptions& wanted_options, bool in_parts);
  Status set_ready(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update,
                   bool is_used);
  Result<StepOutcome> finish();
  Result<StepOutcome> step(std::span<const ConstTensorView> gradients,
                           std::span<const TensorView> updates, std::uint64_t step,
                           const StepOptions& wanted_options);
  /// Prepares parameters and sessions, before the first task.
  Status open_step();
  Status apply_parameters();
  Result<StepOutcome> end_step(Status status);
  Status agree_on_end();
  /// Notes that the step has succeeded, as far as states go.
  void commit(const StepOutcome& outcome);
  /// Applies the records of all ranks about programs with a `sync`. Errors: CheckFailed.
  Status settle_protocols();
  Status failure_of(std::uint32_t piece, std::uint32_t rank);
  /// Handles tensors that no rank has used.
  Status settle_unused();
  Status share_order();

  /// "end of step 7"; valid until the next call.
  std::string_view in_step(std::string_view what);

  const Plan& plan() const { return *options.plan; }
  EverySite every_site() {
    return [this](const SiteVisitor& visit) { compute->visit_states(visit); };
  }

  SyncOptions options;
  Transport& transport;
  std::vector<const ProgramImage*> images;  // of the programs, for CPUs or a device; may be null
  std::unique_ptr<PieceMemory> memory;
  std::unique_ptr<RankTasks> compute;
  std::unique_ptr<ComputeDevice> host;   // the device of the tensors, if they lie in host memory
  std::unique_ptr<StepTensors> tensors;  // destroyed before the device that it works on
  std::unique_ptr<PlanRunner> runner;
  std::unique_ptr<StepRecords> records;
  std::unique_ptr<UpdateErrors> errors;
  // By codec and parameter: values set here, values that the running step began with, bound values.
  std::vector<std::vector<double>> asked, wanted, bound;
  std::vector<double> shared;
  std::vector<GivenInputs> scalars;  // by codec: inputs that are numbers
  // By tensor: the names of arrays that its program, and what carries its sums, take.
  std::vector<std::vector<std::string_view>> input_arrays;
  std::string phase;
  std::optional<Error> failure;  // of an earlier step
  // One more than the last step that succeeded, here or before saving
  std::uint64_t next_step = 0;
  // As of RankCheckpoint; pieces of the plan.
  std::vector<std::uint32_t> left;
  std::optional<std::vector<SavedSite>> later;
  // Data of the running step.
  std::uint64_t step_number = 0;
  StepOptions how;
  bool knows_end = false;                  // it has the records of all ranks
  std::vector<std::uint32_t> taken_back;   // pieces
  std::vector<std::uint8_t> is_ready;      // by tensor
  std::vector<std::uint32_t> ready_order;  // tensors in the order in which they became ready
  // From rank 0: by tensor its place, then how many bundles begin ahead; 0: no such order.
  std::vector<std::uint32_t> common_order;

  UseFlag in_use;
  std::atomic<bool> cancelled{false};
  std::atomic<bool> asks_to_stop{false};
  std::atomic<bool> is_stopping{false};
  bool has_order = false;  // from the first step on
  bool is_under_way = false, is_in_parts = false;
};

}  // namespace cinch::rt
