// The fake of NCCL with devices that compute: kernels and memory of the emulated GPU, on streams of
// the fake, which run by themselves.
#pragma once
#include <cstdint>
#include <string>

#include "codegen/emulator/gpu.h"
#include "tests/collective/nccl/double_world.h"

namespace cinch::testing {

/// One at a time. Copies between host and device access host memory when the stream reaches them,
/// as if it were pinned; but small ones read it at once.
class ComputingDouble {
 public:
  /// Makes a new emulated device for the process: everything of an earlier one is invalid.
  explicit ComputingDouble(const emulator::GpuOptions& options = {});
  ~ComputingDouble();
  ComputingDouble(const ComputingDouble&) = delete;
  ComputingDouble& operator=(const ComputingDouble&) = delete;

  /// The fake library, with these devices.
  const NcclDouble& library() const { return library_; }
  /// Bytes copied between the host and any device so far.
  std::uint64_t num_copied_bytes() const;
  /// How often NCCL has written to freed memory.
  std::uint64_t num_lost_writes() const;

 private:
  NcclDouble library_;
};

}  // namespace cinch::testing
