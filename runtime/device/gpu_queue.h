// One stream of a GPU, NVIDIA's or an emulated one.
#pragma once
#include "runtime/device/compute_device.h"
#include "runtime/gpu/arrays.h"
#include "runtime/gpu/program.h"

namespace cinch::rt {

struct GpuQueueOptions {
  /// The programs, all loaded on one device.
  std::vector<std::shared_ptr<const GpuProgram>> programs;
  /// Any program for that device. It adds and converts tensors that no program works on. Null: the
  /// first of `programs`.
  std::shared_ptr<const GpuProgram> plain;
  /// The stream of all work; it outlives the queue. Null: the queue makes its own.
  GpuStream stream = nullptr;
  /// Shared by queues of a device that only one of them may use at a time (an emulated one). A
  /// queue holds it while it uses the device. Outlives the queue; may be null.
  std::mutex* turns = nullptr;
};

/// What transports, and sums of payloads that stay on a device, need of a queue.
struct GpuQueue {
  std::shared_ptr<const GpuDevice> device;
  GpuStream stream = nullptr;
  GpuArrays* arrays = nullptr;
  std::mutex* turns = nullptr;  // as in the options; may be null
};

/// Opens the queue. Errors: InvalidArgument (no program, programs for different devices),
/// OutOfMemory, Device.
Result<std::unique_ptr<ComputeDevice>> open_gpu_queue(const GpuQueueOptions& options);

}  // namespace cinch::rt
