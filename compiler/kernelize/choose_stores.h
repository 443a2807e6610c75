// Recompute or store: finds a pulled value that costs more to recompute in several kernels than to
// store once.
#pragma once
#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

inline constexpr int kMaxChosenStores = 9;

// If computing a value reads L arrays per element and k kernels need it, recomputing costs k·L
// loads, and storing L + 1 + (k - 1). Returns the value that saves most, if any saves.
std::optional<ir::ValueId> choose_store(const FunctionContext& cx, ir::RegionId region,
                                        const RegionPlan& plan);

}  // namespace cinch::codegen
