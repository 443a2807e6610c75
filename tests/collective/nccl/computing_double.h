// The double of NCCL with devices that compute: the emulated GPU's kernels and memory, on streams
// of the double, which go on by themselves.
#pragma once
#include <cstdint>
#include <string>

#include "codegen/emulator/gpu.h"
#include "tests/collective/nccl/double_world.h"

namespace cinch::testing {

/// One at a time. Copies between host and device take or give the host's memory when the stream
/// comes to them, as of memory that is pinned; but small ones take it at once.
class ComputingDouble {
 public:
  /// Starts the process's emulated device anew: what an earlier one had is gone.
  explicit ComputingDouble(const emulator::GpuOptions& options = {});
  ~ComputingDouble();
  ComputingDouble(const ComputingDouble&) = delete;
  ComputingDouble& operator=(const ComputingDouble&) = delete;

  /// With these devices.
  const NcclDouble& library() const { return library_; }
  /// Between the host and any device, so far.
  std::uint64_t num_copied_bytes() const;
  /// What NCCL has written where no memory was any more.
  std::uint64_t num_lost_writes() const;

 private:
  NcclDouble library_;
};

}  // namespace cinch::testing
