// The interval that a parameter's value must lie in: membership and text, the same wherever a value
// is bound.
#pragma once

#include <string>

#include "runtime/core/program_info.h"

namespace cinch::rt {

/// NaN lies in no range. An absent side is unbounded; if it is open, infinity itself is outside.
bool is_within(const ParamRange& range, double value);

/// "(0, 1]", "[0, inf)".
std::string range_text(const ParamRange& range);
/// The same, but "1..=8" for closed ranges of integers.
std::string range_text(DType dtype, const ParamRange& range);

}  // namespace cinch::rt
