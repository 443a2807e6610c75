// The inside of a session that synchronises.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/use_flag.h"
#include "runtime/sync/agreement.h"
#include "runtime/sync/piece_memory.h"
#include "runtime/sync/plan_runner.h"
#include "runtime/sync/rank_tasks.h"
#include "runtime/sync/states/checkpoint.h"
#include "runtime/sync/states/update_errors.h"
#include "runtime/sync/step_record.h"
#include "runtime/sync/step_tensors.h"
#include "runtime/sync/sync_session.h"

namespace cinch::rt {

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
  Status share_parameters();
  Status apply_parameters();
  Result<StepOutcome> end_step(Status status);
  Status agree_on_end();
  /// Notes that the step has succeeded, as far as states go.
  void commit(const StepOutcome& outcome);
  /// Applies the records of all ranks about programs with a `sync`. Errors: CheckFailed.
  Status settle_protocols();
  Status failure_of(std::uint32_t piece, std::uint32_t rank);
  Status measure_errors();
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
