// Selection in each row of a matrix, in one sweep, without sorting rows. If a row fits a tile, its
// largest elements are marked at once (mark_largest). For longer rows the key of the k-th largest
// is found two bits at a time from the top. Each step takes three reductions of the row, which lies
// in the nearest caches. Part of expand_selection.
#pragma once

#include "compiler/ir/builder.h"
#include "compiler/passes/selection_keys.h"

namespace cinch::passes {

/// Do rows have a constant number of elements, from 33 to 2^16, and keys at most 32 bits?
bool can_count_rows(ir::Builder& builder, const SelectionKeys& keys);
/// Can mark_largest take these rows?
bool fits_a_tile(ir::Builder& builder, const SelectionKeys& keys);
/// [rows, 1]: the key of the k-th largest of each row. k is a u32 scalar; for k = 0 the key is all
/// ones.
ir::ValueId ranked_keys_of_rows(ir::Builder& builder, const SelectionKeys& keys, ir::ValueId k);
/// [rows, cols]: marks the k largest of each row, the first of equal keys. For rows that do not fit
/// a tile.
ir::ValueId mask_of_largest_in_rows(ir::Builder& builder, const SelectionKeys& keys, ir::ValueId k);

}  // namespace cinch::passes
