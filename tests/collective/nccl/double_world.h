// Ranks as threads over the fake of NCCL, each with a device of its own, and their memory on it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/emulator/gpu.h"
#include "runtime/transports/nccl/nccl_transport.h"
#include "tests/collective/nccl/double/control.h"
#include "tests/collective/nccl/on_device_transport.h"

namespace cinch::testing {

/// One of the fake's libraries, opened, with its control functions.
class NcclDouble {
 public:
  /// "nccl_double" or "nccl_double_old".
  static const NcclDouble& open(const std::string& name);

  std::string file;
  const rt::GpuDriver* driver = nullptr;
  NcclDoublePlantFn* plant = nullptr;
  NcclDoubleSleepFn* sleep = nullptr;
  NcclDoubleLeaveTogetherFn* leave_together = nullptr;
  NcclDoubleCountFn* num_registrations = nullptr;
  NcclDoubleAdoptFn* adopt = nullptr;
  NcclDoubleForgetFn* forget = nullptr;
  NcclDoubleOnWriteFn* on_write = nullptr;
  NcclDoubleEnqueueFn* enqueue = nullptr;

  /// Wrong uses since the last call.
  std::string wrong_uses() const;
  std::shared_ptr<const rt::GpuDevice> device(std::uint32_t rank) const;

 private:
  NcclDoubleWrongUsesFn* wrong_uses_ = nullptr;
};

/// Runs `body` on a thread for each rank, with a transport that is opened and closed there. Fails
/// the test if one does not open, or if the library was used wrongly.
void run_nccl_ranks(const NcclDouble& library, std::uint32_t world,
                    const std::function<void(rt::Transport&)>& body, rt::NcclOptions options = {});

/// The transport over memory of the fake's devices, with writes that are delayed by a millisecond.
OnDeviceTransport on_device(rt::Transport& inner, const NcclDouble& library);

// The fake of NCCL with devices that compute: kernels and memory of the emulated GPU, on streams of
// the fake, which run by themselves.

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
