// What a step should take on a link that is not here: the planner's prediction of the best plan,
// from times that programs take on this machine.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/codecs/program_survey.h"
#include "compiler/driver/options.h"
#include "runtime/planner/choose_plan.h"

namespace cinch::driver {

/// "1Gbit/s", "25 Gbit/s", "100Mbit" in bytes a second. Throws CommandError (Usage).
double parse_link(const std::string& text);

/// Parts of a step overlap.
struct StepPrediction {
  std::string plan;  // "two_shot"
  double seconds = 0, encode_seconds = 0, network_seconds = 0, decode_seconds = 0;
};

/// Ranks are machines alike, each with a link of its own to one switch.
class StepPredictor {
 public:
  /// Measures how long gradients without a program take. Throws CommandError.
  StepPredictor(const std::vector<SurveyTensor>& tensors, const SurveyOptions& options);

  /// Gradients as f32.
  StepPrediction without_program() const;
  /// Measures the program's calls. Throws CommandError, also where collectives of a `sync` only
  /// show on the way.
  StepPrediction with_program(const std::shared_ptr<const rt::LoadedProgram>& program) const;

 private:
  rt::PlanRequest request(bool is_compressed, bool takes_matrices) const;
  StepPrediction best(const rt::PlanRequest& request, const rt::CostInputs& costs) const;

  const std::vector<SurveyTensor>& tensors_;
  const SurveyOptions& options_;
  rt::CostInputs costs_;
};

}  // namespace cinch::driver
