// Bounds the integers in an array, whatever the inputs are. Conservative: if nothing better is
// known, the range is that of the type.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

struct IntegerRange {
  std::int64_t least = 0, greatest = 0;
  friend bool operator==(const IntegerRange&, const IntegerRange&) = default;
};

/// The range of a value of an integer type; nothing if an end has a magnitude above 2^53.
std::optional<IntegerRange> find_integer_range(const ir::Program& program,
                                               const ir::Function& function, ir::ValueId value);

}  // namespace cinch::analysis
