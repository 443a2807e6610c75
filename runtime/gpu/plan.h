// From the steps of an entry to a list of launches that needs no host in between, but where ranks
// meet: branches and rounds become conditions that kernels look at on the device.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::rt {

// A loop's bound, and what it was planned for.
struct PlannedBound {
  HostExprId expr;
  std::int64_t most = 0;
};

// What the host does with the other ranks between launches.
enum class PlannedMeeting : std::uint8_t {
  None,
  Exchange,  // `collective`: to buffer arg0 from buffer arg1
  Agree,     // that all have come to the end
};

struct PlannedLaunch {
  bool is_service = false;
  std::uint32_t index = 0;  // of the image's kernel, or a GpuService
  std::uint32_t arg0 = kNoIndex, arg1 = kNoIndex;
  std::int64_t value = 0;
  std::vector<GpuCondition> conditions;
  bool is_guarded = true;
  PlannedMeeting meeting = PlannedMeeting::None;
  CollectiveInfo collective;
  /// Reduces stored partials in part, by many blocks.
  bool is_fold() const { return !is_service && value == static_cast<std::int64_t>(GpuFold::Folds); }
};

/// Appends the launches of `steps`. most(expr): the most that a loop's bound can be, over all
/// tensors; what it gave is appended to `bounds`. `folds`: before every kernel of one block whose
/// partials may be folded comes a launch that does, under the same conditions. Host conditions
/// outside of branches and loops are not among them: the host checks them before it enqueues
/// anything. Errors: Unavailable (more launches, or branches in one another, than a call can have).
Status plan_steps(const ProgramImage& image, const std::vector<Step>& steps,
                  const std::function<Result<std::int64_t>(HostExprId)>& most, bool folds,
                  std::vector<PlannedLaunch>& out, std::vector<PlannedBound>& bounds);

}  // namespace cinch::rt
