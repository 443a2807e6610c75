// The emulated GPU of a rank's process, whose driver counts what goes between it and the host.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/sync/sync_device.h"

namespace cinch::testing {

/// One for the process: what ranks have given up may still be written to its memory.
class CountedGpu {
 public:
  static CountedGpu& of_process();

  const std::shared_ptr<const rt::GpuDevice>& device() const { return device_; }
  std::mutex& turns() { return turns_; }
  /// With the program of each expression (as of compiled_library), in order.
  rt::SyncDevice sync_device(const std::vector<std::string>& expressions);

  /// Between host and device so far.
  static std::uint64_t num_copied_bytes();
  /// That are not zero in whole pages of memory that was given back, as the emulator left them.
  std::uint64_t num_lost_bytes();

 private:
  CountedGpu();
  std::mutex turns_;
  std::shared_ptr<const rt::GpuDevice> device_;
};

}  // namespace cinch::testing
