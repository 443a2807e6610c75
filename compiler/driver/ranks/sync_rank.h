// `cinch sync`: one rank, the GPUs of ranks, and the final report.
#pragma once

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <map>
#include <mutex>

#include "compiler/driver/codecs/verify_subject.h"
#include "compiler/driver/ranks/sync_tensors.h"
#include "runtime/autoplan/auto_plan.h"
#include "runtime/planner/choose_plan.h"
#include "runtime/sync/sync_session.h"

namespace cinch::driver {
struct SyncRankOptions {
  rt::SyncOptions session;
  std::uint64_t first_step = 0, num_steps = 1;
  std::vector<std::vector<std::uint8_t>> saved_states;  // of all ranks, to start from; may be empty
  bool saves_states = false;
  // By tensor of the plan: when the gradient becomes ready after the begin of the step. Empty: all
  // are ready at once.
  std::vector<double> ready_seconds;
};

// What a rank knows at the end. All of it except its own update is the same on all ranks.
struct SyncReport {
  std::vector<std::vector<float>> updates;    // by tensor, of the last step
  std::vector<double> step_ms;                // by step: of the slowest rank
  std::vector<rt::TaskTimes> times;           // by rank, of the last step
  std::vector<std::uint64_t> sent_bytes;      // by rank, of the last step
  double relative_error = 0;                  // ‖mean - update‖ / ‖mean‖ of the last step
  bool same_bits = true;                      // of the updates of all steps
  bool was_stopped = false;                   // some rank got a signal
  std::optional<rt::RestoreReport> restored;  // about this rank's states
  std::vector<std::uint8_t> saved_states;     // of this rank after the last step, if requested
};

// One rank, over any transport. All ranks run this and learn the same about each other. Takes all
// steps with the same gradients, by tensor of the plan. Throws CommandError.
SyncReport run_sync_rank(const SyncRankOptions& options,
                         const std::vector<rt::ConstTensorView>& gradients,
                         rt::Transport& transport);

/// The GPUs on which ranks of this process compute.
class SyncDevices {
 public:
  // `programs` are by codec. Must outlive the sessions of all ranks.
  SyncDevices(const ExecutionOptions& execution, const std::vector<ProgramOptions>& programs)
      : execution_(execution), programs_(programs) {}

  // The GPU of a rank: ranks take the machine's GPUs in turn. Nothing if the options name a CPU.
  // Call it from one thread. Throws CommandError.
  std::optional<rt::SyncDevice> of(std::uint32_t rank);

 private:
  rt::SyncDevice open(int ordinal);

  const ExecutionOptions& execution_;
  const std::vector<ProgramOptions>& programs_;
  std::map<int, rt::SyncDevice> opened_;  // by ordinal
  std::mutex turns_;                      // for an emulated device, which runs on one thread
};

// The final report: one value, as JSON or as text.
nlohmann::json report_of(const SyncCommandOptions& options, const SyncSubject& subject,
                         const rt::Plan& plan, const SyncReport& report);
void print_sync_report(const nlohmann::json& report);

// Predicted steps, and the choice of a plan by them.

// Predicts the time of a step on a link that this machine need not have: the planner's prediction
// of the best plan, from the programs' times on this machine.

/// Parses "1Gbit/s", "25 Gbit/s", "100Mbit" to bytes per second. Throws CommandError (Usage).
double parse_link(const std::string& text);

/// The parts of a step overlap.
struct StepPrediction {
  std::string plan;  // "two_shot"
  double seconds = 0, encode_seconds = 0, network_seconds = 0, decode_seconds = 0;
};

/// Ranks are equal machines, each with a link of its own to one switch.
class StepPredictor {
 public:
  /// Measures gradients without a program. Throws CommandError.
  StepPredictor(const std::vector<SurveyTensor>& tensors, const SurveyOptions& options);

  /// Predicts a step with gradients as f32.
  StepPrediction without_program() const;
  /// Measures the program's calls and predicts a step. Throws CommandError, also if the collectives
  /// of a `sync` are only known as it runs. `carrier` carries its sums; null if no program does.
  StepPrediction with_program(const std::shared_ptr<const rt::LoadedProgram>& program,
                              const std::shared_ptr<const rt::LoadedProgram>& carrier) const;

 private:
  rt::PlanRequest request(bool is_compressed, bool takes_matrices) const;
  StepPrediction best(const rt::PlanRequest& request, const rt::CostInputs& costs) const;
  StepPrediction best_of_classes(const rt::PlanRequest& request, const rt::CostInputs& costs) const;

  const std::vector<SurveyTensor>& tensors_;
  const SurveyOptions& options_;
  rt::CostInputs costs_;
};

// `--plan auto` of the command: known facts about its network, and the text about the choice.

// What is known of ranks that are threads of this process, on links of this shape: measures how
// they meet and copy. Throws CommandError.
rt::KnownNetwork loopback_network(std::uint32_t world, const rt::LinkShape& shape,
                                  std::chrono::milliseconds timeout);

// The choices to try, besides the options' own wishes.
rt::ChoiceSpace space_of(const SyncCommandOptions& options);

// For ranks that are threads of this process. Throws CommandError.
rt::AutoPlan choose_on_loopback(const SyncCommandOptions& options,
                                std::vector<rt::AutoPlanInputs> by_rank);
// All ranks call it. Throws CommandError.
rt::AutoPlan choose_over(const SyncCommandOptions& options, rt::AutoPlanInputs inputs,
                         rt::Transport& transport);

// The text about a choice: the cheapest variant of each plan, all that were tried, and why the
// chosen one was chosen.
std::string choice_text(const rt::PlanChoice& choice);
nlohmann::json choice_json(const rt::PlanChoice& choice);

// Throws CommandError (Usage) for a plan that does not exist, or that the command does not offer.
void check_plan_name(const SyncCommandOptions& options);
// Throws CommandError (Usage) if --servers or --machine-ranks do not fit this many ranks.
void check_ranks_of_plan(const SyncCommandOptions& options, std::uint32_t world);

}  // namespace cinch::driver
