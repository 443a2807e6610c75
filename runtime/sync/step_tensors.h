// The user's tensors of one step. It makes the scaled copies that tasks read and write in their
// place, and looks for non-finite gradients if the user asks for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/call/list_call.h"
#include "runtime/collective/transport.h"
#include "runtime/device/compute_device.h"
#include "runtime/exec/program_buffers.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {
/// An array that a tensor's program takes as an `input`.
struct NamedArray {
  std::string_view name;
  ConstTensorView array;
};

// The part of a step's data that lies in one rank's host memory: the wire, and the user's tensors
// unless they lie on the rank's device.

class PieceMemory {
 public:
  /// `plan` outlives this. Errors: OutOfMemory.
  static Result<PieceMemory> make(const Plan& plan, std::uint32_t rank);
  /// The same wire with other tensors; this outlives it.
  PieceMemory beside() const;

  /// Sets the tensors of a step, in the plan's order.
  void bind(std::span<const ConstTensorView> gradients, std::span<const TensorView> updates,
            std::span<const std::vector<NamedArray>> inputs = {}) {
    gradients_ = gradients;
    updates_ = updates;
    inputs_ = inputs;
  }

  ConstTensorView gradient(std::uint32_t piece) const;
  /// The piece's part of an input. Errors: InvalidArgument (it has no value in this step).
  Result<ConstTensorView> input(std::uint32_t piece, std::string_view name) const;
  /// The update of a piece; only for pieces whose update this rank gets.
  TensorView update(std::uint32_t piece) const;

  std::span<std::uint8_t> bytes_of(std::uint32_t slot);
  std::span<std::uint8_t> wire() { return wire_; }
  /// Bytes of the slot that are in use: all bytes if it has no length. Errors: CorruptPayload (a
  /// length beyond the slot's room).
  Result<std::uint64_t> used_bytes(std::uint32_t slot);
  void set_used_bytes(std::uint32_t slot, std::uint64_t bytes);

 private:
  PieceMemory(const Plan& plan, std::uint32_t rank)
      : plan_(&plan), own_(&plan.ranks[rank]), rank_(rank) {}

  const Plan* plan_;
  const RankPlan* own_;
  std::uint32_t rank_;
  AlignedBuffer owned_;
  std::span<std::uint8_t> wire_;  // in owned_, or another one's
  std::span<const ConstTensorView> gradients_;
  std::span<const TensorView> updates_;
  std::span<const std::vector<NamedArray>> inputs_;
};

// Checks the facts that all ranks must share before they synchronise.

/// A fact that must be the same on all ranks, as a name and a value: "parameters of topk",
/// "ratio=0.001".
struct CommonFact {
  std::string name;
  std::string value;
};

/// Compares the facts in one small exchange. If ranks differ, a second exchange tells each rank who
/// has what. Every rank calls this. Errors: InvalidArgument (on every rank; names the first fact
/// that differs, and each value with its ranks), those of the transport.
Status agree_on(const std::vector<CommonFact>& facts, Transport& transport,
                std::chrono::milliseconds timeout);

// Checks that the gradients and updates of a step do not overlap: an update is written while other
// gradients and updates may still be read.

class StepMemory {
 public:
  /// For the tensors of `plan`, which outlives this, on one rank.
  StepMemory(const Plan& plan, std::uint32_t rank);

  /// Begins a step: forgets all tensors.
  void clear();
  /// Adds one tensor, once a step. An update may be its gradient's memory; if the rank has a part
  /// of the tensor, the update may be that part of the gradient. Errors: InvalidArgument (the
  /// update overlaps other memory of the step; names both tensors).
  Status add(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update);

 private:
  struct Range {
    std::uintptr_t begin = 0, end = 0;
    /// An empty range overlaps nothing, wherever it lies.
    bool overlaps(const Range& other) const {
      return std::max(begin, other.begin) < std::min(end, other.end);
    }
  };
  struct Added {
    std::uint32_t tensor = 0;
    Range gradient, update;
  };
  // Memory that some tensors have taken.
  class Ranges {
   public:
    explicit Ranges(std::pmr::memory_resource* nodes) : ends_(nodes) {}
    bool overlap(const Range& range) const;
    void add(Range range);
    void clear() { ends_.clear(); }

   private:
    std::pmr::map<std::uintptr_t, std::uintptr_t> ends_;  // by beginning; they do not meet
  };
  static Range range_of(const ConstTensorView& view);
  /// Is the update the gradient's own memory, element by element?
  bool is_in_place(std::uint32_t tensor, const ConstTensorView& gradient,
                   const TensorView& update) const;

  const Plan& plan_;
  const std::uint32_t rank_;
  std::vector<Added> added_;
  std::size_t num_added_ = 0;
  // A step allocates nothing.
  std::vector<std::byte> room_;
  std::pmr::monotonic_buffer_resource nodes_{room_.data(), room_.size()};
  Ranges gradients_{&nodes_}, updates_{&nodes_};
};

// Compares what ranks end a step with. A byte that changes on its way, and that no checksum caught,
// would else leave replicas apart for the rest of the run.

class UpdateDigests {
 public:
  /// `is_local`: by codec, whether its program claims that updates differ. `plan` outlives this.
  ///
  /// Not compared are updates that a rank gets only its part of, and those of local programs.
  UpdateDigests(const Plan& plan, std::uint32_t rank, const std::vector<bool>& is_local);

  /// Compares nothing from now on. For devices that write updates after they are delivered.
  void skip_all() { is_compared_.assign(is_compared_.size(), false); }
  /// Forgets the tensor's update of the step before.
  void forget(std::uint32_t tensor) { digests_[tensor] = 0; }
  /// Notes the tensor's update when it is written. Different tensors may be noted at once.
  void note(std::uint32_t tensor, const TensorView& update);

  /// A digest of all updates that were noted; 0: none was.
  std::uint64_t of_all() const;
  /// Finds out which tensors differ where digests of all updates do. All ranks call it. Errors:
  /// CheckFailed (tensors and ranks by name), those of the transport.
  Status compare(std::span<const TensorView> updates, Transport& transport,
                 std::chrono::milliseconds timeout) const;

 private:
  const Plan& plan_;
  std::vector<bool> is_compared_;       // by tensor
  std::vector<std::uint64_t> digests_;  // by tensor; 0: none
};

struct TensorFactors {
  /// Gradients are divided by this before they are synchronised, and updates multiplied by it.
  double scale = 1;
  /// Are updates sums over ranks, not means?
  bool is_sum = false;
  bool looks_for_non_finite = false;
};

class StepTensors {
 public:
  /// Tensors lie in memory of `device`. `device` and `plan` outlive this. Nobody else uses a
  /// `device` that is a host. `is_local`: of UpdateDigests.
  StepTensors(const Plan& plan, std::uint32_t rank, ComputeDevice& device,
              const std::vector<bool>& is_local);
  ~StepTensors();
  StepTensors(const StepTensors&) = delete;
  StepTensors& operator=(const StepTensors&) = delete;

  /// Begins a step. Errors: InvalidArgument (factors that are not finite and above 0).
  Status begin(const TensorFactors& factors);
  /// Sets one tensor of the step. Errors: InvalidArgument (another number of elements, a type that
  /// is not supported, null, memory of another tensor of the step).
  Status set(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update);

  /// Sets an input of a tensor for the step that begins next or has begun; it stays in place until
  /// the step ends. Its name outlives this. Errors: InvalidArgument (another number of elements, a
  /// type that is not supported, null).
  Status set_input(std::uint32_t tensor, std::string_view name, const ConstTensorView& array);
  /// Inputs are by tensor; the same memory in every step.
  std::span<const std::vector<NamedArray>> inputs() const { return inputs_; }
  bool has_input(std::uint32_t tensor, std::string_view name) const;
  void forget_inputs();

  /// The arrays that tasks work on, by tensor; the same memory in every step.
  std::span<const ConstTensorView> gradients() const { return gradients_; }
  std::span<const TensorView> updates() const { return updates_; }
  /// The user's own arrays, which hold the updates when the step has ended.
  std::span<const TensorView> given_updates() const { return wanted_; }

  /// prepare runs before the first task that reads the tensor, deliver after the last one that
  /// writes its update. Both may run for different tensors at once. Errors: OutOfMemory, Device,
  /// InvalidArgument (not the device's memory).
  Status prepare(std::uint32_t tensor);
  Status deliver(std::uint32_t tensor);
  /// Does a gradient of this step have a non-finite value? Waits for the device. Errors: Device.
  Result<bool> take_non_finite();
  /// Of what was delivered, if it lies in host memory.
  UpdateDigests& digests() { return digests_; }
  /// Waits until all delivered updates are written. Errors: Device.
  Status end();

 private:
  bool is_scaled() const { return factors_.scale != 1 || factors_.is_sum; }
  Status check_memory(std::uint32_t tensor) const;
  Status rescale(std::uint32_t tensor);
  /// f32 memory of the gradient, later of the update. Errors: OutOfMemory, Device.
  Result<std::uint8_t*> values(std::uint32_t tensor);
  /// Writes the gradient, divided by the scale, to that memory.
  Result<ConstTensorView> scale(std::uint32_t tensor);

  const Plan& plan_;
  const std::uint32_t rank_;
  ComputeDevice& device_;
  StepMemory memory_;
  UpdateDigests digests_;
  std::mutex mutex_;  // shared by both lanes
  TensorFactors factors_;
  std::vector<ConstTensorView> given_, gradients_;
  std::vector<std::vector<NamedArray>> inputs_;
  std::vector<TensorView> wanted_, updates_;
  MemoryPieces values_;  // by tensor; empty until first needed
};

}  // namespace cinch::rt
