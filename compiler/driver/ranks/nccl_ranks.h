// Ranks of this process over NCCL, each on a GPU.
#pragma once
#include <memory>
#include <vector>

#include "compiler/driver/options.h"
#include "runtime/transports/nccl/nccl_transport.h"

namespace cinch::driver {

class NcclRanks {
 public:
  // `ranks` 0: one for each GPU. Throws CommandError (Unavailable) if there is no NCCL, no GPU, or
  // fewer GPUs than ranks.
  NcclRanks(const TransportOptions& options, std::uint32_t ranks);

  std::uint32_t world() const { return world_; }
  // Opens a rank's transport. All ranks call it, each on its thread. Throws CommandError.
  std::unique_ptr<rt::Transport> open(std::uint32_t rank) const;

 private:
  std::uint32_t world_ = 0;
  int num_devices_ = 0;
  rt::NcclId id_;
  rt::NcclOptions options_;
  const rt::GpuDriver* driver_ = nullptr;
};

}  // namespace cinch::driver
