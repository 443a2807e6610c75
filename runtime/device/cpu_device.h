// The CPUs of this process.
#pragma once
#include <atomic>

#include "runtime/device/compute_device.h"
#include "runtime/session/loaded_program.h"

namespace cinch::rt {

struct CpuDeviceOptions {
  std::vector<std::shared_ptr<const LoadedProgram>> programs;
  std::uint32_t threads = 0;  // of each list, and of what no program does; 0: all of the machine
  /// Set to true from anywhere to end what runs; outlives the device and its lists. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

std::unique_ptr<ComputeDevice> open_cpu_device(CpuDeviceOptions options);

}  // namespace cinch::rt
