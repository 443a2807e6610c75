// One stream of a GPU, NVIDIA's or an emulated one.
#pragma once
#include "runtime/device/compute_device.h"
#include "runtime/gpu/arrays.h"
#include "runtime/gpu/program.h"

namespace cinch::rt {

struct GpuQueueOptions {
  /// All loaded for one device.
  std::vector<std::shared_ptr<const GpuProgram>> programs;
  /// Any program for that device: it adds and converts what no program has a part in. Null: the
  /// first.
  std::shared_ptr<const GpuProgram> plain;
  /// All work goes on it; it outlives the queue. Null: one of its own.
  GpuStream stream = nullptr;
  /// Of those that share a device which only one of them may use at a time (an emulated one): held
  /// while one uses it. Outlives the queue; may be null.
  std::mutex* turns = nullptr;
};

/// What transports, and sums of payloads that stay on a device, go by.
struct GpuQueue {
  std::shared_ptr<const GpuDevice> device;
  GpuStream stream = nullptr;
  GpuArrays* arrays = nullptr;
  std::mutex* turns = nullptr;  // as of the options; may be null
};

/// Errors: InvalidArgument (no program, programs for different devices),
/// OutOfMemory, Device.
Result<std::unique_ptr<ComputeDevice>> open_gpu_queue(const GpuQueueOptions& options);

}  // namespace cinch::rt
