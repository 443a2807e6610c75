// Recompute or store: picks a pulled value that several kernels would compute again at a higher
// price than storing it once.
#pragma once
#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

inline constexpr int kMaxChosenStores = 9;

// With L arrays read per element to compute a value and k kernels that want it: computing costs k·L
// loads, storing L + 1 + (k - 1). Returns the value that saves most, if any saves.
std::optional<ir::ValueId> choose_store(const FunctionContext& cx, ir::RegionId region,
                                        const RegionPlan& plan);

}  // namespace cinch::codegen
