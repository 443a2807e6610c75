// `cinch plan`: what a step is planned from, and the plan of its tensors as a file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/ranks/sync_tensors.h"
#include "runtime/planner/plan_file.h"
#include "runtime/planner/ready_profile.h"
#include "runtime/planner/routes/step_routes.h"
#include "runtime/planner/speeds.h"

namespace cinch::driver {

// What a step in 16 bits is compared with.
inline constexpr const char* kHalfProgram = "fp16";

struct StepPlan {
  rt::StepRoutes routes;
  rt::PlanFile file;
  rt::ReadyProfile profile;
  std::string device;     // "cpu", or a GPU's architecture
  bool has_half = false;  // may tensors travel in 16 bits?
};

// Rows and columns for programs on matrices.
Shape matrix_of(const std::vector<std::int64_t>& shape);

// One-dimensional and small tensors are exact, as without a policy.
bool is_sent_exactly(const std::vector<std::int64_t>& shape);

SyncSubject load_programs(const ExecutionOptions& execution,
                          const std::vector<std::string>& programs);

// The speeds of options.speeds; measured without one. `ranks`: as below. Throws CommandError.
rt::SpeedTable read_or_measure_speeds(const PlanCommandOptions& options, const SyncSubject& subject,
                                      const std::vector<std::vector<std::int64_t>>& shapes,
                                      std::uint32_t ranks);
// Sets the costs of the subject's programs, in their order. Throws CommandError (one was not
// measured, or another version of it).
void set_speeds(const PlanCommandOptions& options, const rt::SpeedTable& table,
                const SyncSubject& subject, rt::CostInputs& to);

// A predicted step as the timeline that `cinch sync --trace` writes. `ready`: by tensor.
std::string predicted_trace(const rt::Plan& plan, const rt::PlanSpans& spans, double seconds,
                            const std::vector<double>& ready);

// Throws CommandError: a program whose collectives only show on the way.
void check_predictable(const SyncSubject& subject, const rt::PlanRequest& request);

// Measures programs, on made-up gradients of this shape. `ranks`: how many compute on this machine.
// Throws CommandError.
rt::SpeedTable measure_speeds(const PlanCommandOptions& options,
                              const std::vector<std::string>& programs,
                              const std::vector<std::vector<std::int64_t>>& shapes,
                              std::uint32_t ranks);

// Throws CommandError.
StepPlan plan_step(const PlanCommandOptions& options);

}  // namespace cinch::driver
