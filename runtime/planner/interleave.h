// The order of a plan's tasks across bundles: exchanges begin in that order, so it says how far
// bundles overlap.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"

namespace cinch::rt {

/// By rank and task, the bundle that it is for. Tasks of one bundle depend on no other's.
using BundleOfTask = std::vector<std::vector<std::uint32_t>>;

/// A plan written bundle by bundle would begin no exchange of a bundle before the last one of the
/// bundle before: links rest while that is computed. Here bundles follow one another like the steps
/// of a pipeline. All ranks keep matching orders.
void interleave_bundles(Plan& plan, const BundleOfTask& bundles);

/// As many bundles are begun before the first one goes on, as interleave_bundles has it; and where
/// the next one is long in coming.
inline constexpr std::uint32_t kBundlesAhead = 8, kFewBundlesAhead = 2;

/// The places of a rank's tasks for steps whose tensors become ready one after the other, with
/// `place_of_tensor` among them: bundles come as the last of their tensors does, `ahead` of them
/// before the first one goes on. All ranks keep matching orders.
std::vector<std::uint32_t> order_of_tasks(const Plan& plan, std::uint32_t rank,
                                          const std::vector<std::uint32_t>& place_of_tensor,
                                          std::uint32_t ahead);

}  // namespace cinch::rt
