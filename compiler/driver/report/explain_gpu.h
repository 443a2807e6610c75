// What a program's kernels take of a GPU, for `cinch explain --device cuda`.
#pragma once
#include <nlohmann/json.hpp>

#include "compiler/driver/front_end.h"
#include "compiler/driver/options.h"

namespace cinch::driver {

// Adds `arch` and `gpu_kernels` to the report: compiles the program for options.target, or for this
// machine's GPU, or sm_90. Throws CommandError where NVRTC is not here.
void add_gpu_report(FrontEnd& front_end, const ExplainOptions& options, nlohmann::json& report);
void print_gpu_report(const nlohmann::json& report);

}  // namespace cinch::driver
