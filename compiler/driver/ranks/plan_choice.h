// Predicted steps, and the choice of a plan by them.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/driver/codecs/program_survey.h"
#include "compiler/driver/options.h"
#include "runtime/autoplan/auto_plan.h"
#include "runtime/planner/choose_plan.h"

namespace cinch::driver {

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

  const std::vector<SurveyTensor>& tensors_;
  const SurveyOptions& options_;
  rt::CostInputs costs_;
};

// `--plan auto` of the command: known facts about its network, and the text about the choice.

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
