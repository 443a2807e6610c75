// Turns the steps of an entry into a list of launches that needs no host in between, except where
// ranks meet. Branches and rounds become conditions that kernels test on the device.
#pragma once

#include <functional>
#include <string_view>

#include "runtime/gpu/program.h"

namespace cinch::rt {
// The tables of a session on a GPU (gpu_abi.h): one entry per tensor and kind of call. The host
// keeps the bytes; the device has the copy that kernels read. Part of GpuSession.

/// The entry of one tensor on the host.
class GpuTensorEntry {
 public:
  GpuTensorEntry(std::uint8_t* bytes, const GpuTensorLayout& layout)
      : bytes_(bytes), layout_(layout) {}

  void set_buffer(std::size_t index, GpuAddress address) {
    put(layout_.buffers + 8 * index, address);
  }
  void set_bytes(std::size_t index, std::uint64_t value) { put(layout_.bytes + 8 * index, value); }
  void set_size(std::size_t index, std::uint64_t bits) { put(layout_.sizes + 8 * index, bits); }
  void set_groups(std::size_t index, std::uint64_t value) {
    put(layout_.groups + 8 * index, value);
  }
  void set_param(std::size_t index, std::uint64_t bits) { put(layout_.params + 8 * index, bits); }
  void set_header(std::size_t index, std::uint64_t word) { put(layout_.header + 8 * index, word); }
  void set_payload(GpuAddress address, std::uint64_t size_bytes) {
    put(layout_.payload, address);
    put(layout_.payload + 8, size_bytes);
  }
  void set_tensor(GpuAddress address) { put(layout_.tensor, address); }
  void set_draw(std::size_t index, std::uint32_t word) { put(layout_.draw + 4 * index, word); }

 private:
  template <typename T>
  void put(std::size_t offset, T value);
  std::uint8_t* bytes_;
  const GpuTensorLayout& layout_;
};

class GpuTable {
 public:
  GpuTable(const GpuTensorLayout& layout, std::size_t num_tensors)
      : layout_(layout), bytes_(layout.size_bytes * num_tensors), sent_(bytes_.size()) {}

  GpuTensorEntry entry(std::size_t tensor) {
    return {bytes_.data() + tensor * layout_.size_bytes, layout_};
  }
  std::size_t size_bytes() const { return bytes_.size(); }
  void place(GpuAddress address) { address_ = address; }
  GpuAddress address() const { return address_; }

  /// Do the device's bytes differ from the host's?
  bool is_stale() const { return !is_sent_ || bytes_ != sent_; }
  /// Enqueues a copy of the bytes that changed. Errors: Device.
  Status send(const GpuDevice& device, GpuStream stream);

 private:
  GpuTensorLayout layout_;
  std::vector<std::uint8_t> bytes_, sent_;  // the bytes on the host; those on the device
  GpuAddress address_ = 0;
  bool is_sent_ = false;
};

// How many rounds were planned for a loop from `begin` (none: 0) to `end`.
struct PlannedBound {
  HostExprId begin, end;
  std::int64_t most = 0;
};

// What the host does with the other ranks between launches.
enum class PlannedMeeting : std::uint8_t {
  None,
  Exchange,  // `collective`: reads buffer arg1, writes buffer arg0
  Agree,     // agrees that all ranks have reached the end
};

struct PlannedLaunch {
  bool is_service = false;
  std::uint32_t index = 0;  // of a kernel in the image, or a GpuService
  std::uint32_t arg0 = kNoIndex, arg1 = kNoIndex;
  std::int64_t value = 0;
  std::vector<GpuCondition> conditions;
  bool is_guarded = true;
  PlannedMeeting meeting = PlannedMeeting::None;
  CollectiveInfo collective;
  std::vector<BufferIndex> scalars = {};  // of the exchange, as in its step
  std::uint32_t message = kNoIndex;       // as in its step
  HostExprId group, stride;               // the step's expr and expr2
  /// Does it reduce stored partials to fewer, with many blocks?
  bool is_fold() const { return !is_service && value == static_cast<std::int64_t>(GpuFold::Folds); }
};

/// The largest number of rounds that a loop from `begin` (none: 0) to `end` can have, over all
/// tensors and steps.
using MostRounds = std::function<Result<std::int64_t>(HostExprId begin, HostExprId end)>;

/// Appends the launches of `steps` to the plan, and the results of `most_rounds` to `bounds`.
/// `folds`: if partials of a one-block kernel may be folded, a launch before it folds them, under
/// the same conditions. Host conditions outside of branches and loops are left out: the host checks
/// them before it enqueues anything. Errors: Unavailable (more launches or deeper branches than a
/// call can have).
Status plan_steps(const ProgramImage& image, const std::vector<Step>& steps,
                  const MostRounds& most_rounds, bool folds, std::vector<PlannedLaunch>& out,
                  std::vector<PlannedBound>& bounds);

// Groups the steps of a call into launches. A step that needs at most one block of a tensor shares
// a launch with its neighbours.

/// One launch for the steps begin .. begin + size of a call.
struct GpuBatch {
  std::size_t begin = 0, size = 1;
  bool is_narrow = false;  // one block for each tensor; else a single step with many blocks
};

/// Returns as few launches as possible, in order.
std::vector<GpuBatch> batch_launches(const std::vector<PlannedLaunch>& steps,
                                     const std::function<bool(const PlannedLaunch&)>& is_narrow);

/// Returns the step in the form that the device reads.
GpuStep gpu_step(const PlannedLaunch& planned);

struct LaunchedKernel {
  GpuFunction function = nullptr;
  std::string_view symbol;
  std::uint32_t threads = 0, shared_bytes = 0;  // per block
};
/// Returns the kernel that launches a batch whose first step is `first`.
LaunchedKernel launched_kernel(const ProgramImage& image, const GpuKernels& kernels,
                               const PlannedLaunch& first, bool is_narrow);

}  // namespace cinch::rt
