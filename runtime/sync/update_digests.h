// Compares what ranks end a step with. A byte that changes on its way, and that no checksum caught,
// would else leave replicas apart for the rest of the run.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/collective/transport.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

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

}  // namespace cinch::rt
