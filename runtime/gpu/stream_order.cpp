// Bodies of stream_order.h.
#include "runtime/gpu/stream_order.h"

namespace cinch::rt {

GpuStreamOrder::~GpuStreamOrder() {
  if (event_ == nullptr) return;
  const GpuDevice::Scope scope(*device_);
  (void)device_->driver().event_destroy(event_);
}

Status GpuStreamOrder::open() {
  const GpuDevice::Scope scope(*device_);
  const GpuCode code = device_->driver().event_create(&event_, kGpuEventWithoutTiming);
  return device_->status(code, "making an event");
}

Status GpuStreamOrder::enter(GpuStream stream) {
  if (!has_work_) return Ok{};
  // This handle means another stream on each thread.
  const bool is_same = stream == last_ && stream != kGpuStreamOfThread;
  if (is_same) return Ok{};
  const GpuDevice::Scope scope(*device_);
  if (!is_noted_) leave(last_);
  if (!is_noted_) return fail(ErrorKind::Device, "the last call's stream takes no event");
  return device_->status(device_->driver().stream_wait_event(stream, event_, 0),
                         "waiting for the last call's stream");
}

// If the driver fails here, the calls are still valid: enter tries again.
void GpuStreamOrder::leave(GpuStream stream) {
  const GpuDevice::Scope scope(*device_);
  last_ = stream;
  has_work_ = true;
  is_noted_ = device_->driver().event_record(event_, stream) == kGpuSuccess;
}

}  // namespace cinch::rt
