// Unsigned keys in the order of the values: as top_k orders them (NaN highest, -0 equal to +0), or
// as min and max do (-0 below +0; NaN has no defined key).
#pragma once
#include <vector>

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

// Radix selection over keys: finds the key of a given rank, and the k largest elements. Part of
// expand_selection.

/// The key with some rank (of the `need`-th largest), and how many of the elements with this key
/// are among the `need` largest. Scalars of the keys' type and u32.
struct RankedKey {
  ir::ValueId key, need;
};

/// Bins of one histogram: 2^11 of u32 stay in the fastest memory of every target.
inline constexpr int kDigitBits = 11;
/// Returns one for each rank in `needs` (u32, from 1 to the number of keys; for rank 0 the key is
/// all ones). Takes one sweep over the keys for each digit.
std::vector<RankedKey> find_keys(ir::Builder& builder, const SelectionKeys& keys,
                                 const ir::ValueIds& needs, int digit_bits = kDigitBits);
/// Marks the elements that are larger than the key, and the first `need` of those equal to it.
ir::ValueId mask_of_largest(ir::Builder& builder, ir::ValueId keys, const RankedKey& found);
/// [u32; k]: the places where the mask is true; it is true for k elements.
ir::ValueId first_of(ir::Builder& builder, ir::ValueId mask, HostExprId k);

/// Is this a vector that is too long to sweep often, and does the host know its size and k?
bool can_sample(ir::Builder& builder, const SelectionKeys& keys, HostExprId k);
/// top_k of a vector that can be sampled.
ir::ValueId sampled_top_k(ir::Builder& builder, const SelectionKeys& keys, HostExprId k);

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
