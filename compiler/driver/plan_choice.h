// `--plan auto`: measures what is not known yet, and takes the plan that should be fastest.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "runtime/planner/choose_plan.h"
#include "runtime/session/loaded_program.h"
#include "runtime/session/tensor_view.h"

namespace cinch::driver {

// What is to be synchronised; the request without plan, piece size and lengths.
struct ChoiceSubject {
  rt::PlanRequest request;
  std::vector<std::shared_ptr<const rt::LoadedProgram>> programs;  // by codec
  std::vector<rt::ConstTensorView> gradients;                      // by tensor: of one rank
  std::uint32_t threads = 1;                                       // of a rank
};

struct ChosenPlan {
  rt::PlanRequest request;
  std::optional<rt::PlanChoice> choice;  // none on ranks that were told, and where there is none
};

// Ranks are threads of this process. Throws CommandError.
ChosenPlan choose_on_loopback(const SyncCommandOptions& options, const ChoiceSubject& subject);
// All ranks call it: rank 0 decides and tells the others. Throws CommandError.
ChosenPlan choose_over(const SyncCommandOptions& options, const ChoiceSubject& subject,
                       rt::Transport& transport);

// The cheapest way of each plan, and why the chosen one was chosen.
std::string choice_text(const rt::PlanChoice& choice);
nlohmann::json choice_json(const rt::PlanChoice& choice);

}  // namespace cinch::driver
