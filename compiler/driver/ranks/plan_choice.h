// `--plan auto` of the command: what is known of its network, and what a person is told of the
// choice.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "runtime/autoplan/auto_plan.h"

namespace cinch::driver {

// What is tried beside the options' own wishes.
rt::ChoiceSpace space_of(const SyncCommandOptions& options);

// Ranks are threads of this process. Throws CommandError.
rt::AutoPlan choose_on_loopback(const SyncCommandOptions& options,
                                std::vector<rt::AutoPlanInputs> by_rank);
// All ranks call it. Throws CommandError.
rt::AutoPlan choose_over(const SyncCommandOptions& options, rt::AutoPlanInputs inputs,
                         rt::Transport& transport);

// The cheapest way of each plan, all that were tried, and why the chosen one was chosen.
std::string choice_text(const rt::PlanChoice& choice);
nlohmann::json choice_json(const rt::PlanChoice& choice);

// Throws CommandError (Usage) for a plan that there is not, or that is none for the command.
void check_plan_name(const SyncCommandOptions& options);

}  // namespace cinch::driver
