// The resources that a program's kernels need on a GPU, for `cinch explain --device cuda`.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/driver/front_end.h"
#include "compiler/driver/options.h"

namespace cinch::driver {

// Adds `arch` and `gpu_kernels` to the report: compiles the program for options.target, for this
// machine's GPU, or for sm_90. Throws CommandError if there is no NVRTC.
void add_gpu_report(FrontEnd& front_end, const ExplainOptions& options, nlohmann::json& report);
// A table of the kernels; lines are no longer than `width`, from 60 on.
std::string gpu_report_text(const nlohmann::json& report, std::size_t width);

}  // namespace cinch::driver
