// Sinks that make kernels of their own: scans by tiles, argsort.
#pragma once
#include "compiler/kernelize/kernel_emitter.h"

namespace cinch::codegen {

// A scan in the language's float order: tiles of 1024, their ends scanned by the same rule, joined
// on the left. Two sweeps: one leaves the tile ends, the other scans again, joins and stores.
std::vector<rt::Step> emit_scan(FunctionContext& cx, const RegionPlan& plan, int sink);

// Counts how often each cell is named, then fails the call where one is named twice.
std::vector<rt::Step> emit_check_unique(FunctionContext& cx, const RegionPlan& plan, int sink);

// A stable order of stored keys, row by row.
std::vector<rt::Step> emit_argsort(FunctionContext& cx, const RegionPlan& plan, int sink);

}  // namespace cinch::codegen
