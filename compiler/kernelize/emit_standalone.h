// Sinks that are kernels of their own: scans by tiles, argsort.
#pragma once
#include "compiler/kernelize/kernel_emitter.h"

namespace cinch::codegen {

// A scan in the language's float order: tiles of 1024, whose ends are scanned by the same rule and
// joined on the left. Two sweeps: the first stores the tile ends, the second scans again, joins and
// stores.
std::vector<rt::Step> emit_scan(FunctionContext& cx, const RegionPlan& plan, int sink);

// Counts how often each cell is named, and fails the call if one is named twice.
std::vector<rt::Step> emit_check_unique(FunctionContext& cx, const RegionPlan& plan, int sink);

// Sorts the indices of stored keys stably, row by row.
std::vector<rt::Step> emit_argsort(FunctionContext& cx, const RegionPlan& plan, int sink);

}  // namespace cinch::codegen
