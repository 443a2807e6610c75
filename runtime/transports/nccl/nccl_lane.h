// A communicator with the stream that its work is on. NCCL does the work of one communicator in the
// order in which ranks give it, so what may be given in another order has another lane.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>

#include "runtime/gpu/device.h"
#include "runtime/transports/nccl/nccl_endings.h"
#include "runtime/transports/nccl/nccl_library.h"

namespace cinch::rt {

/// The device's context is current in all calls.
class NcclLane {
 public:
  NcclLane(const NcclCalls& calls, std::shared_ptr<const GpuDevice> device)
      : calls_(calls), device_(std::move(device)) {}
  /// After `end`.
  ~NcclLane();
  NcclLane(const NcclLane&) = delete;
  NcclLane& operator=(const NcclLane&) = delete;

  /// Begins to make a communicator; is_idle says when it is there. `most_blocks`: of kernels, 0:
  /// as many as NCCL likes.
  Status open(const NcclUniqueId& id, std::uint32_t world, std::uint32_t rank, int most_blocks);
  /// Another one's, which end leaves alone.
  Status lend(NcclComm comm);

  NcclComm comm() const { return comm_; }
  GpuStream stream() const { return stream_; }
  bool is_lent() const { return is_lent_; }

  /// Has the communicator taken what it was given, so that it takes more? Errors: Device (what has
  /// gone wrong in it since).
  Result<bool> is_idle();
  /// What a call has answered; in progress is no error.
  Status status(NcclCode code, const char* what) const;

  /// Begins the end of our own communicator. Orderly: nothing is under way.
  void end(NcclEndings& endings, bool is_orderly);

  std::deque<std::uint32_t> queue;  // tickets that have not given all of their work yet, in order

 private:
  struct Opening;
  Status make_stream();
  Status open_on_a_thread(const NcclUniqueId& id, int world, int rank);

  const NcclCalls& calls_;
  std::shared_ptr<const GpuDevice> device_;
  std::shared_ptr<Opening> opening_;  // of versions that block; kept for its memory
  NcclComm comm_ = nullptr;
  GpuStream stream_ = nullptr;
  bool is_lent_ = false, is_open_ = false;
};

}  // namespace cinch::rt
