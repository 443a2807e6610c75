// What `cinch tune` measures: programs of the library at several sizes, on a CPU or a GPU.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/bench/tuning_search.h"
#include "compiler/driver/options.h"
#include "runtime/gpu/device.h"

namespace cinch::driver {

// Encode and decode together, in sessions of as many threads as options say. All throw
// CommandError where a call fails.
std::vector<bench::TuningWorkload<rt::CpuTuning>> cpu_workloads(const ExecutionOptions& options);
// Encode and decode of programs that are compiled once for each number of warps, timed on the
// device.
std::vector<bench::TuningWorkload<rt::GpuTuning>> gpu_workloads(
    const std::shared_ptr<const rt::GpuDevice>& device);

}  // namespace cinch::driver
