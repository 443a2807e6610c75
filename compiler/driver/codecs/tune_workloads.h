// The measurements of `cinch tune`: programs of the library at several sizes, on a CPU or a GPU.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/bench/tuning_search.h"
#include "compiler/driver/options.h"
#include "runtime/gpu/device.h"

namespace cinch::driver {

// Encode and decode together, in sessions with the options' number of threads. All throw
// CommandError if a call fails.
std::vector<bench::TuningWorkload<rt::CpuTuning>> cpu_workloads(const ExecutionOptions& options);
// Encode and decode of programs that are compiled once for each number of warps. The device
// measures the time.
std::vector<bench::TuningWorkload<rt::GpuTuning>> gpu_workloads(
    const std::shared_ptr<const rt::GpuDevice>& device);

}  // namespace cinch::driver
