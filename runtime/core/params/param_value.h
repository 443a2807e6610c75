// The value of a parameter in host expressions, the same in the runtime and in the interpreter.
#pragma once

#include <cstdint>

#include "runtime/core/numbers/dtype.h"
#include "runtime/core/sizes/host_expr.h"

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
