// Ranks that share one emulated GPU, for tests.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/emulator/driver.h"
#include "runtime/gpu/program.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

/// Has the program of each expression (see compiled_library), in order.
rt::SyncDevice sync_device_on(const std::shared_ptr<const rt::GpuDevice>& device,
                              const std::vector<std::string>& expressions);

/// Makes a new emulated device for the process: everything of an earlier one is invalid.
class EmulatedRanks {
 public:
  explicit EmulatedRanks(const emulator::GpuOptions& options = {});

  /// Has the program of each expression (see compiled_library), in order.
  rt::SyncDevice device(const std::vector<std::string>& expressions);
  const std::shared_ptr<rt::GpuDevice>& gpu() const { return gpu_; }
  std::mutex& turns() { return turns_; }

 private:
  std::mutex turns_;
  std::shared_ptr<rt::GpuDevice> gpu_;
};

}  // namespace cinch::testing
