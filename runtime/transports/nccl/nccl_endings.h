// Ends communicators, each on a thread of its own. Memory that NCCL frees there waits for every
// kernel on the device, so all communicators must have been told to stop before. The calls also
// wait for other ranks of the machine, which may have stopped.
#pragma once
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/transports/nccl/nccl_abi.h"

namespace cinch::rt {

/// A communicator and the memory of its work.
struct NcclEnding {
  const NcclCalls* calls = nullptr;
  std::shared_ptr<const GpuDevice> device;
  NcclComm comm = nullptr;
  GpuStream stream = nullptr;
  bool is_orderly = false;       // no work is under way: finalized and destroyed, not aborted
  std::shared_ptr<void> memory;  // freed afterwards
};

class NcclEndings {
 public:
  NcclEndings();
  ~NcclEndings() { wait(); }
  NcclEndings(const NcclEndings&) = delete;
  NcclEndings& operator=(const NcclEndings&) = delete;
  void begin(NcclEnding ending);
  /// Waits until all have ended, but at most some seconds after the last one began; abandons
  /// threads that have not ended. Returns whether all have.
  bool wait();
  /// Keeps memory until the endings that are under way are done.
  void keep(std::shared_ptr<void> memory);

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
  std::chrono::steady_clock::time_point until_;
};

}  // namespace cinch::rt
