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

}  // namespace cinch::passes
