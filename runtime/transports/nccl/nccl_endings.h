// Communicators that come to their end, each on a thread of its own. Memory that NCCL gives back
// there waits for every kernel on the device, so all must have been told to stop by then; and the
// calls wait for the other ranks of the machine, which may have stopped.
#pragma once
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/transports/nccl/nccl_library.h"

namespace cinch::rt {

/// A communicator and what its work uses.
struct NcclEnding {
  const NcclCalls* calls = nullptr;
  std::shared_ptr<const GpuDevice> device;
  NcclComm comm = nullptr;
  GpuStream stream = nullptr;
  bool is_orderly = false;       // nothing is under way: finalized and destroyed, not aborted
  std::shared_ptr<void> memory;  // given back afterwards
};

class NcclEndings {
 public:
  NcclEndings();
  ~NcclEndings() { wait(); }
  NcclEndings(const NcclEndings&) = delete;
  NcclEndings& operator=(const NcclEndings&) = delete;
  void begin(NcclEnding ending);
  /// Have all ended? Waits for that, but only seconds since the last one began; leaves the threads
  /// behind that have not.
  bool wait();
  /// Lives until those have ended that have not.
  void keep(std::shared_ptr<void> memory);

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
  std::chrono::steady_clock::time_point until_;
};

}  // namespace cinch::rt
