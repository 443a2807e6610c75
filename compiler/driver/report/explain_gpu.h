// The resources that a program's kernels need on a GPU, for `cinch explain --device cuda`.
#pragma once
#include <nlohmann/json.hpp>

#include "compiler/driver/front_end.h"
#include "compiler/driver/options.h"

namespace cinch::driver {

// Adds `arch` and `gpu_kernels` to the report: compiles the program for options.target, for this
// machine's GPU, or for sm_90. Throws CommandError if there is no NVRTC.
void add_gpu_report(FrontEnd& front_end, const ExplainOptions& options, nlohmann::json& report);
void print_gpu_report(const nlohmann::json& report);

}  // namespace cinch::driver
