// Orders a plan's tasks across bundles. Exchanges begin in that order, so it decides how far
// bundles overlap.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"

namespace cinch::rt {

/// By rank and task: the bundle of the task. Tasks of one bundle depend on no other bundle.
using BundleOfTask = std::vector<std::vector<std::uint32_t>>;

/// Reorders the tasks so that bundles follow one another like the steps of a pipeline. A plan
/// written bundle by bundle would begin no exchange of a bundle before the last exchange of the
/// bundle before, and links would idle while ranks compute. The orders of all ranks still match.
void interleave_bundles(Plan& plan, const BundleOfTask& bundles);

/// How many bundles begin before the first one goes on: kBundlesAhead in interleave_bundles,
/// kFewBundlesAhead if the next bundle is long in coming.
inline constexpr std::uint32_t kBundlesAhead = 8, kFewBundlesAhead = 2;

/// Returns the order of a rank's tasks, as their places, for steps whose tensors become ready one
/// after the other, in the order of `place_of_tensor`. A bundle comes when its last tensor is
/// ready; `ahead` bundles begin before the first one goes on. The orders of all ranks still match.
std::vector<std::uint32_t> order_of_tasks(const Plan& plan, std::uint32_t rank,
                                          const std::vector<std::uint32_t>& place_of_tensor,
                                          std::uint32_t ahead);

}  // namespace cinch::rt
