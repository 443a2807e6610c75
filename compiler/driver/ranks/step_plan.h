// `cinch plan`: what a step is planned from, and the plan of its tensors as a file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

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

// Measures programs, on made-up gradients of this shape. `ranks`: how many compute on this machine.
// Throws CommandError.
rt::SpeedTable measure_speeds(const PlanCommandOptions& options,
                              const std::vector<std::string>& programs,
                              const std::vector<std::vector<std::int64_t>>& shapes,
                              std::uint32_t ranks);

// Throws CommandError.
StepPlan plan_step(const PlanCommandOptions& options);

}  // namespace cinch::driver
