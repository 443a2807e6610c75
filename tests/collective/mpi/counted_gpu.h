// The emulated GPU of a rank's process, whose driver counts copies between it and the host.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/sync/sync_device.h"

namespace cinch::testing {

/// One per process: exchanges that ranks gave up may still write to its memory.
class CountedGpu {
 public:
  static CountedGpu& of_process();

  const std::shared_ptr<const rt::GpuDevice>& device() const { return device_; }
  std::mutex& turns() { return turns_; }
  /// Has the program of each expression (see compiled_library), in order.
  rt::SyncDevice sync_device(const std::vector<std::string>& expressions);

  /// Bytes copied between host and device so far.
  static std::uint64_t num_copied_bytes();
  /// Nonzero bytes in whole pages of freed memory, as the emulator left them.
  std::uint64_t num_lost_bytes();

 private:
  CountedGpu();
  std::mutex turns_;
  std::shared_ptr<const rt::GpuDevice> device_;
};

}  // namespace cinch::testing
