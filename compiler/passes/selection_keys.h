// Unsigned keys that order values, larger above smaller: as top_k does (NaN highest, -0 equal to
// +0), or as min and max do (-0 below +0; of NaN they know nothing).
#pragma once

#include "compiler/ir/builder.h"

namespace cinch::passes {

/// Keys of one array of values: `bits` of them count, the others are 0.
struct SelectionKeys {
  ir::ValueId keys;  // u32, or u64 where bits > 32; the shape of the values
  DType key_type;
  int bits;
  /// Values are magnitudes: their own bits are in order.
  bool is_magnitude = false;
};

enum class ZeroOrder : std::uint8_t { Equal, NegativeBelow };

/// Builds the keys of a value of any type.
SelectionKeys make_keys(ir::Builder& builder, ir::ValueId values,
                        ZeroOrder zeros = ZeroOrder::Equal);
/// The value of a scalar key, as kth_largest gives it.
ir::ValueId value_of_key(ir::Builder& builder, const SelectionKeys& keys, ir::ValueId key,
                         DType value_type);

}  // namespace cinch::passes
