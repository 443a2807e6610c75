// The interval of a parameter's values: membership and text, the same wherever a value is bound.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/numbers/dtype.h"
#include "runtime/core/program_info.h"

namespace cinch::rt {

/// May a parameter of the type be bound to `value`? The value and its rounding must both lie in the
/// range, whose closed ends are rounded in the same way. NaN lies in no range. A missing side is
/// unbounded; if it is open, infinity itself is outside.
bool is_within(const ParamRange& range, DType dtype, double value);

/// A value outside the range, as text: "1.5"; "1e+300 (inf as f32)" if only its rounding is
/// outside.
std::string outside_text(const ParamRange& range, DType dtype, double value);

/// The intersection; a missing range contains everything.
std::optional<ParamRange> intersection(const std::optional<ParamRange>& a,
                                       const std::optional<ParamRange>& b);

/// "(0, 1]", "[0, inf)".
std::string range_text(const ParamRange& range);
/// The same, but "1..=8" for closed ranges of integers.
std::string range_text(DType dtype, const ParamRange& range);

}  // namespace cinch::rt
