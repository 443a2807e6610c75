// Unsigned keys in the order of the values: as top_k orders them (NaN highest, -0 equal to +0), or
// as min and max do (-0 below +0; NaN has no defined key).
#pragma once

#include "compiler/ir/builder.h"

namespace cinch::passes {

/// Keys of one array of values: `bits` of them are used, the others are 0.
struct SelectionKeys {
  ir::ValueId keys;  // u32, or u64 if bits > 32; in the shape of the values
  DType key_type;
  int bits;
  /// Are values magnitudes? Their own bits are then in order.
  bool is_magnitude = false;
};

enum class ZeroOrder : std::uint8_t { Equal, NegativeBelow };

/// Builds the keys of a value of any type.
SelectionKeys make_keys(ir::Builder& builder, ir::ValueId values,
                        ZeroOrder zeros = ZeroOrder::Equal);
/// The value of a scalar key, as kth_largest returns it.
ir::ValueId value_of_key(ir::Builder& builder, const SelectionKeys& keys, ir::ValueId key,
                         DType value_type);

// Selection in each row of a matrix, in one sweep, without sorting rows. If a row fits a tile, its
// largest elements are marked at once (mark_largest). For longer rows the key of the k-th largest
// is found two bits at a time from the top. Each step takes three reductions of the row, which lies
// in the nearest caches. Part of expand_selection.

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
