// The GPUs that ranks of this process compute on.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "compiler/driver/options.h"
#include "runtime/gpu/program.h"
#include "runtime/sync/sync_device.h"

namespace cinch::driver {

class SyncDevices {
 public:
  // `programs` by codec. Outlives the sessions of all ranks.
  SyncDevices(const ExecutionOptions& execution, const std::vector<ProgramOptions>& programs)
      : execution_(execution), programs_(programs) {}

  // Ranks take the machine's GPUs in turn; nothing where the options name a CPU. From one thread.
  // Throws CommandError.
  std::optional<rt::SyncDevice> of(std::uint32_t rank);

 private:
  rt::SyncDevice open(int ordinal);

  const ExecutionOptions& execution_;
  const std::vector<ProgramOptions>& programs_;
  std::map<int, rt::SyncDevice> opened_;  // by ordinal
  std::mutex turns_;                      // of an emulated device, which runs on one thread
};

}  // namespace cinch::driver
