// Work that has nothing to do with what other threads capture.
#pragma once
#include "runtime/gpu/driver.h"

namespace cinch::rt {

/// While this lives, the thread may wait for events, free memory and load modules during other
/// threads' captures, to which none of this belongs. In a thread's default mode that would spoil
/// the captures.
class BesideCaptures {
 public:
  explicit BesideCaptures(const GpuDriver& driver) : driver_(driver) { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() {
    if (driver_.exchange_capture_mode != nullptr) (void)driver_.exchange_capture_mode(&mode_);
  }
  const GpuDriver& driver_;
  int mode_ = kGpuCaptureRelaxed;
};

}  // namespace cinch::rt
