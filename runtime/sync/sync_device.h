// The GPU that a rank computes on.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/gpu/program.h"

namespace cinch::rt {

struct SyncDevice {
  /// By codec of the plan, all loaded for one device: those that SyncOptions::programs has for
  /// CPUs.
  std::vector<std::shared_ptr<const GpuProgram>> programs;
  /// Any program for that device: it adds and converts what no program has a part in. Null: the
  /// first.
  std::shared_ptr<const GpuProgram> plain;
  /// All work goes on it; it outlives the session. Null: one of the session's own.
  GpuStream stream = nullptr;
  /// Gradients and updates lie in the device's memory, ready in the stream's order; else they are
  /// copied there and back.
  bool has_tensors = false;
  /// Of ranks that share a device which only one of them may use at a time (an emulated one): held
  /// while a rank uses it. Outlives the session; may be null.
  std::mutex* turns = nullptr;
};

}  // namespace cinch::rt
