// Radix selection over keys: finds the key of a given rank, and the k largest elements. Part of
// expand_selection.
#pragma once

#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/passes/selection_keys.h"

namespace cinch::passes {

/// The key with some rank (of the `need`-th largest), and how many of the elements with this key
/// are among the `need` largest. Scalars of the keys' type and u32.
struct RankedKey {
  ir::ValueId key, need;
};

/// Returns one for each rank in `needs` (u32, from 1 to the number of keys; for rank 0 the key is
/// all ones). Takes one sweep over the keys for each digit.
std::vector<RankedKey> find_keys(ir::Builder& builder, const SelectionKeys& keys,
                                 const ir::ValueIds& needs);
/// Marks the elements that are larger than the key, and the first `need` of those equal to it.
ir::ValueId mask_of_largest(ir::Builder& builder, ir::ValueId keys, const RankedKey& found);
/// [u32; k]: the places where the mask is true; it is true for k elements.
ir::ValueId first_of(ir::Builder& builder, ir::ValueId mask, HostExprId k);

/// Is this a vector that is too long to sweep often, and does the host know its size and k?
bool can_sample(ir::Builder& builder, const SelectionKeys& keys, HostExprId k);
/// top_k of a vector that can be sampled.
ir::ValueId sampled_top_k(ir::Builder& builder, const SelectionKeys& keys, HostExprId k);

}  // namespace cinch::passes
