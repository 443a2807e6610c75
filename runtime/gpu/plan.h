// From the steps of an entry to a list of launches that needs no host in between, but where ranks
// meet: branches and rounds become conditions that kernels look at on the device.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::rt {

// Of a loop from `begin` (none: 0) to `end`, how many rounds were planned.
struct PlannedBound {
  HostExprId begin, end;
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
  std::vector<BufferIndex> scalars = {};  // of the exchange, as those of its step
  std::uint32_t message = kNoIndex;       // likewise
  /// Reduces stored partials in part, by many blocks.
  bool is_fold() const { return !is_service && value == static_cast<std::int64_t>(GpuFold::Folds); }
};

/// The most rounds that a loop from `begin` (none: 0) to `end` can have, over all tensors and
/// steps.
using MostRounds = std::function<Result<std::int64_t>(HostExprId begin, HostExprId end)>;

/// Appends the launches of `steps`; what `most_rounds` gave is appended to `bounds`. `folds`:
/// before every kernel of one block whose partials may be folded comes a launch that does, under
/// the same conditions. Host conditions outside of branches and loops are not among them: the host
/// checks them before it enqueues anything. Errors: Unavailable (more launches, or branches in one
/// another, than a call can have).
Status plan_steps(const ProgramImage& image, const std::vector<Step>& steps,
                  const MostRounds& most_rounds, bool folds, std::vector<PlannedLaunch>& out,
                  std::vector<PlannedBound>& bounds);

}  // namespace cinch::rt
