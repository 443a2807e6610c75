// A communicator with the stream of its work. NCCL does the work of one communicator in the order
// in which ranks submit it, so work in another order needs another lane.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/transports/nccl/nccl_abi.h"

namespace cinch::rt {
// Ends communicators, each on a thread of its own. Memory that NCCL frees there waits for every
// kernel on the device, so all communicators must have been told to stop before. The calls also
// wait for other ranks of the machine, which may have stopped.

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

/// The device's context must be current in all calls.
class NcclLane {
 public:
  NcclLane(const NcclCalls& calls, std::shared_ptr<const GpuDevice> device)
      : calls_(calls), device_(std::move(device)) {}
  /// Call `end` before.
  ~NcclLane();
  NcclLane(const NcclLane&) = delete;
  NcclLane& operator=(const NcclLane&) = delete;

  /// Begins to make a communicator; is_idle tells when it is ready. `most_blocks`: limit for its
  /// kernels; 0: NCCL chooses.
  Status open(const NcclUniqueId& id, std::uint32_t world, std::uint32_t rank, int most_blocks);
  /// Uses the caller's communicator, which `end` does not end.
  Status lend(NcclComm comm);

  NcclComm comm() const { return comm_; }
  GpuStream stream() const { return stream_; }
  bool is_lent() const { return is_lent_; }

  /// Has the communicator accepted its work, so that it takes more? Errors: Device (a fault in it
  /// since the last call).
  Result<bool> is_idle();
  /// Converts the result of a call; "in progress" is not an error.
  Status status(NcclCode code, const char* what) const;

  /// Begins the end of our own communicator. Orderly: no work is under way.
  void end(NcclEndings& endings, bool is_orderly);

  std::deque<std::uint32_t> queue;  // tickets, in order, that have not submitted all of their work

 private:
  struct Opening;
  Status make_stream();
  Status open_on_a_thread(const NcclUniqueId& id, int world, int rank);

  const NcclCalls& calls_;
  std::shared_ptr<const GpuDevice> device_;
  std::shared_ptr<Opening> opening_;  // for versions whose calls block; kept for its memory
  NcclComm comm_ = nullptr;
  GpuStream stream_ = nullptr;
  bool is_lent_ = false, is_open_ = false;
};

}  // namespace cinch::rt
