// `--plan auto` of the command: known facts about its network, and the text about the choice.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "runtime/autoplan/auto_plan.h"

namespace cinch::driver {

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

}  // namespace cinch::driver
