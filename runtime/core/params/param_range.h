// The interval that a parameter's value must lie in: membership and text, the same wherever a value
// is bound.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/numbers/dtype.h"
#include "runtime/core/program_info.h"

namespace cinch::rt {

/// Whether a parameter of the type may be bound to `value`: the value and what it is rounded to
/// both lie in the range, whose included ends are rounded alike. NaN lies in no range. An absent
/// side is unbounded; if it is open, infinity itself is outside.
bool is_within(const ParamRange& range, DType dtype, double value);

/// A value outside the range: "1.5"; "1e+300 (inf as f32)" where only what it is rounded to is.
std::string outside_text(const ParamRange& range, DType dtype, double value);

/// What lies in both; an absent range holds everything.
std::optional<ParamRange> intersection(const std::optional<ParamRange>& a,
                                       const std::optional<ParamRange>& b);

/// "(0, 1]", "[0, inf)".
std::string range_text(const ParamRange& range);
/// The same, but "1..=8" for closed ranges of integers.
std::string range_text(DType dtype, const ParamRange& range);

}  // namespace cinch::rt
