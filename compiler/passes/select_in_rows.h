// Selection in each row of a matrix. Rows are not sorted, and all of it is one sweep. The largest
// of a row that fits a tile are marked at once (mark_largest). Of a longer row the key of the k-th
// largest is found two bits at a time from the top, each from three reductions of the row, which
// lies in the nearest caches. Parts of expand_selection.
#pragma once

#include "compiler/ir/builder.h"
#include "compiler/passes/selection_keys.h"

namespace cinch::passes {

/// Have rows a constant number of elements, from 33 to 2^16, and keys at most 32 bits?
bool can_count_rows(ir::Builder& builder, const SelectionKeys& keys);
/// Are these rows such that mark_largest takes them?
bool fits_a_tile(ir::Builder& builder, const SelectionKeys& keys);
/// [rows, 1]: the key of the k-th largest of each row; k is a u32 scalar, of 0 the key is all ones.
ir::ValueId ranked_keys_of_rows(ir::Builder& builder, const SelectionKeys& keys, ir::ValueId k);
/// [rows, cols]: is this one of the k largest of its row? Of equal keys the first ones are. For
/// rows that do not fit a tile.
ir::ValueId mask_of_largest_in_rows(ir::Builder& builder, const SelectionKeys& keys, ir::ValueId k);

}  // namespace cinch::passes
