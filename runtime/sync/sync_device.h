// The GPU that a rank computes on.
#pragma once
#include "runtime/device/gpu_queue.h"

namespace cinch::rt {

/// Its programs by codec of the plan: those that SyncOptions::programs has for CPUs. What shares
/// the device outlives the session.
struct SyncDevice : GpuQueueOptions {
  /// Gradients and updates lie in the device's memory, ready in the stream's order; else they are
  /// copied there and back.
  bool has_tensors = false;
};

}  // namespace cinch::rt
