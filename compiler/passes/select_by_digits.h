// Radix selection over keys: which key has a given rank, and which elements are the k largest.
// Parts of expand_selection.
#pragma once

#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/passes/selection_keys.h"

namespace cinch::passes {

/// The key of some rank (of the `need`-th largest), and how many of the elements that have this key
/// are among the `need` largest. Scalars of the keys' type and u32.
struct RankedKey {
  ir::ValueId key, need;
};

/// One for each of the ranks `needs` (u32, from 1 to the number of keys; for rank 0 the key is all
/// ones), in one sweep over the keys for each digit.
std::vector<RankedKey> find_keys(ir::Builder& builder, const SelectionKeys& keys,
                                 const ir::ValueIds& needs);
/// Which elements are larger than the key, or equal to it and among the first `need` such.
ir::ValueId mask_of_largest(ir::Builder& builder, ir::ValueId keys, const RankedKey& found);
/// [u32; k]: where the mask, which holds for k elements, holds.
ir::ValueId first_of(ir::Builder& builder, ir::ValueId mask, HostExprId k);

/// Is this a vector, too long to be swept often, and does the host know its size and k?
bool can_sample(ir::Builder& builder, const SelectionKeys& keys, HostExprId k);
/// top_k of a vector that can be sampled.
ir::ValueId sampled_top_k(ir::Builder& builder, const SelectionKeys& keys, HostExprId k);

}  // namespace cinch::passes
