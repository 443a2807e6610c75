// Finds values that kernels would recompute so often that no cost model is needed: compiling alone
// would take too long.
#pragma once
#include <vector>

#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

/// Returns values of the region that need a store of their own, whatever else is stored:
/// - values that one kernel would compute at many places: each operator that moves elements (a
/// gather, a slice, `concat`) asks for its operand at a place of its own, and several such
/// operators in a row double the places each time;
/// - values that end a long chain of operators which several sinks would compute from its
/// beginning.
/// Linear in the number of operators.
std::vector<ir::ValueId> find_repeated_work(const FunctionContext& cx, ir::RegionId region,
                                            const std::vector<StoreRequest>& requests);

}  // namespace cinch::codegen
