// Values that kernels would compute again and again, so often that no cost model need be asked:
// compiling would take as long as they are many.
#pragma once
#include <vector>

#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

/// Values of the region that need a store of their own, whatever is stored besides:
/// - what one kernel would compute at many places, since each operator that moves elements (a
///   gather, a slice, `concat`) asks for what it moves at a place of its own, and such operators
///   behind one another double the places;
/// - what ends a long chain of operators that several sinks would compute from its beginning.
/// Linear in operators.
std::vector<ir::ValueId> find_repeated_work(const FunctionContext& cx, ir::RegionId region,
                                            const std::vector<StoreRequest>& requests);

}  // namespace cinch::codegen
