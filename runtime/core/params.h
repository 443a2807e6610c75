// The value of a parameter in host expressions, the same in the runtime and in the interpreter.
#pragma once
#include <cmath>

#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch {

/// The type that a parameter of `dtype` has in host expressions: Bool, Int, or F64 for every float.
HostType host_type_of(DType dtype);
/// The element type that a host value has in a program: bool, i64, f32 or f64.
DType dtype_of(HostType type);

/// The nearest value of a float type up to f32, as f32.
float round_to_float(DType dtype, double value);

/// The type that the pool's expressions use for parameter `index`: that of its Param node;
/// host_type_of(dtype) if none uses it.
HostType param_type(const HostExprPool& exprs, std::uint32_t index, DType dtype);

/// The value, in host expressions, of a parameter of `dtype` that is bound to `value`. As F64 it is
/// the value as given, though the parameter's type may be narrower: `ceil(ratio * n)` is then the
/// result of plain f64 arithmetic.
HostValue make_param_value(DType dtype, HostType type, double value);

}  // namespace cinch

namespace cinch::rt {

// The interval of a parameter's values: membership and text, the same wherever a value is bound.

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

// Which values a parameter of a type can be bound to, by a user or in a file.

/// Floats round to their type.
inline bool is_value_of(DType dtype, double value) {
  if (is_float(dtype)) return true;
  if (is_bool(dtype)) return value == 0 || value == 1;
  // Above 2^53 doubles skip integers, so a bound value could not be told from its neighbours.
  constexpr double kExact = 9007199254740992.0;
  return std::trunc(value) == value && std::fabs(value) <= kExact &&
         value >= static_cast<double>(min_int(dtype)) &&
         value <= static_cast<double>(max_int(dtype));
}

}  // namespace cinch::rt
