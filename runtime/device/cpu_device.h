// The CPUs of this process.
#pragma once
#include <atomic>

#include "runtime/device/compute_device.h"
#include "runtime/session/loaded_program.h"

namespace cinch::rt {

struct CpuDeviceOptions {
  std::vector<std::shared_ptr<const LoadedProgram>> programs;
  // Of each list, and for work that no program does; 0: all of the machine
  std::uint32_t threads = 0;
  /// Set to true from anywhere to end running work; outlives the device and its lists. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

std::unique_ptr<ComputeDevice> open_cpu_device(CpuDeviceOptions options);

}  // namespace cinch::rt
