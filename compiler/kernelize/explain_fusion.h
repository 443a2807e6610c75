// Why two kernels of a region are not one.
#pragma once
#include "compiler/kernelize/fusion_report.h"
#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

// Explains, in terms that an author can act on: the value that must be ready first, or the domains
// that differ. `first` runs before `second`. The caller sets the symbols of the kernels.
SweepsApart why_apart(const FunctionContext& cx, const RegionPlan& plan, const KernelPlan& first,
                      const KernelPlan& second);

}  // namespace cinch::codegen
