// The GPU that a rank computes on.
#pragma once
#include "runtime/device/gpu_queue.h"

namespace cinch::rt {

/// The device's programs, by codec of the plan; they replace SyncOptions::programs, which are for
/// CPUs. Whatever shares the device outlives the session.
struct SyncDevice : GpuQueueOptions {
  /// Do gradients and updates lie in the device's memory, ready in the stream's order? Otherwise
  /// they are copied there and back.
  bool has_tensors = false;
};

}  // namespace cinch::rt
