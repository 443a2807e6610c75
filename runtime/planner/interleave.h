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

}  // namespace cinch::rt
