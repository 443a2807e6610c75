// Bodies of events.h.
#include "runtime/gpu/events.h"

#include <utility>

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

Result<GpuTimer> GpuTimer::create(std::shared_ptr<const GpuDevice> device) {
  GpuTimer timer(std::move(device));
  const GpuDevice::Scope scope(*timer.device_);
  const GpuDriver& driver = timer.device_->driver();
  GpuCode code = driver.event_create(&timer.start_, 0);
  if (code == kGpuSuccess) code = driver.event_create(&timer.stop_, 0);
  CINCH_TRY(timer.device_->status(code, "making an event"));
  return timer;
}

GpuTimer::GpuTimer(GpuTimer&& other) noexcept
    : device_(std::move(other.device_)),
      start_(std::exchange(other.start_, nullptr)),
      stop_(std::exchange(other.stop_, nullptr)) {}

GpuTimer& GpuTimer::operator=(GpuTimer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(start_, other.start_);
  std::swap(stop_, other.stop_);
  return *this;
}

GpuTimer::~GpuTimer() {
  if (device_ == nullptr) return;
  const GpuDevice::Scope scope(*device_);
  for (const GpuEvent event : {start_, stop_}) {
    if (event != nullptr) device_->driver().event_destroy(event);
  }
}

Status GpuTimer::start(GpuStream stream) {
  const GpuDevice::Scope scope(*device_);
  return device_->status(device_->driver().event_record(start_, stream), "recording an event");
}

Status GpuTimer::stop(GpuStream stream) {
  const GpuDevice::Scope scope(*device_);
  return device_->status(device_->driver().event_record(stop_, stream), "recording an event");
}

Result<double> GpuTimer::milliseconds() const {
  const GpuDevice::Scope scope(*device_);
  const GpuDriver& driver = device_->driver();
  float elapsed = 0;
  GpuCode code = driver.event_synchronize(stop_);
  if (code == kGpuSuccess) code = driver.event_elapsed_time(&elapsed, start_, stop_);
  CINCH_TRY(device_->status(code, "timing on the device"));
  return elapsed;
}

}  // namespace cinch::rt
