// The GPUs on which ranks of this process compute.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "compiler/driver/options.h"
#include "runtime/gpu/program.h"
#include "runtime/sync/sync_session.h"

namespace cinch::driver {

class SyncDevices {
 public:
  // `programs` are by codec. Must outlive the sessions of all ranks.
  SyncDevices(const ExecutionOptions& execution, const std::vector<ProgramOptions>& programs)
      : execution_(execution), programs_(programs) {}

  // The GPU of a rank: ranks take the machine's GPUs in turn. Nothing if the options name a CPU.
  // Call it from one thread. Throws CommandError.
  std::optional<rt::SyncDevice> of(std::uint32_t rank);

 private:
  rt::SyncDevice open(int ordinal);

  const ExecutionOptions& execution_;
  const std::vector<ProgramOptions>& programs_;
  std::map<int, rt::SyncDevice> opened_;  // by ordinal
  std::mutex turns_;                      // for an emulated device, which runs on one thread
};

}  // namespace cinch::driver
