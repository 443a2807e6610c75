// Measures how long the device takes for a stream's work between two events.
#pragma once
#include <memory>

#include "runtime/gpu/device.h"

namespace cinch::rt {

class GpuTimer {
 public:
  /// Errors: Device, OutOfMemory.
  static Result<GpuTimer> create(std::shared_ptr<const GpuDevice> device);
  GpuTimer(GpuTimer&& other) noexcept;
  GpuTimer& operator=(GpuTimer&& other) noexcept;
  ~GpuTimer();

  /// start and stop only enqueue; the stream must not be capturing. Errors: InvalidArgument (no
  /// such stream), Device.
  Status start(GpuStream stream);
  Status stop(GpuStream stream);

  /// Waits until the device has reached the stop. Errors: InvalidArgument (not started or not
  /// stopped), Device (also errors of the stream's work in between).
  Result<double> milliseconds() const;

 private:
  explicit GpuTimer(std::shared_ptr<const GpuDevice> device) : device_(std::move(device)) {}
  std::shared_ptr<const GpuDevice> device_;
  GpuEvent start_ = nullptr, stop_ = nullptr;
};

}  // namespace cinch::rt
