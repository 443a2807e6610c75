// Why two kernels of a region are not one.
#pragma once
#include "compiler/kernelize/fusion_report.h"
#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

// `first` runs before `second`. Says what an author can act on: the value that must be there first,
// or the domains that differ. The symbols of the kernels are the caller's.
SweepsApart why_apart(const FunctionContext& cx, const RegionPlan& plan, const KernelPlan& first,
                      const KernelPlan& second);

}  // namespace cinch::codegen
