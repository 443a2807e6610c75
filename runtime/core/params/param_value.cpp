// Parameters' values in host expressions.
#include "runtime/core/params/param_value.h"

#include "runtime/core/lang.h"

namespace cinch {

HostType host_type_of(DType dtype) {
  if (is_bool(dtype)) return HostType::Bool;
  if (is_int(dtype)) return HostType::Int;
  return HostType::F64;
}

DType dtype_of(HostType type) {
  switch (type) {
    case HostType::Int:
      return kI64;
    case HostType::F32:
      return kF32;
    case HostType::F64:
      return kF64;
    case HostType::Bool:
      break;
  }
  return kBool;
}

float round_to_float(DType dtype, double value) {
  switch (dtype.kind) {
    case DTypeKind::F16:
      return lang::from_f16(lang::to_f16(value));
    case DTypeKind::BF16:
      return lang::from_bf16(lang::to_bf16(value));
    case DTypeKind::F8E4M3:
      return lang::from_f8e4m3(lang::to_f8e4m3(value));
    case DTypeKind::F8E5M2:
      return lang::from_f8e5m2(lang::to_f8e5m2(value));
    default:
      return static_cast<float>(value);
  }
}

HostType param_type(const HostExprPool& exprs, std::uint32_t index, DType dtype) {
  for (std::size_t i = 0; i < exprs.num_nodes(); ++i) {
    const HostExprNode& node = exprs.node(HostExprId(i));
    if (node.op == HostOp::Param && node.payload == index) return node.type;
  }
  return host_type_of(dtype);
}

HostValue make_param_value(DType dtype, HostType type, double value) {
  switch (type) {
    case HostType::Int:
      return HostValue::from_int(static_cast<std::int64_t>(value));
    case HostType::F32:
      return HostValue::from_f32(round_to_float(dtype, value));
    case HostType::F64:
      return HostValue::from_f64(value);
    case HostType::Bool:
      break;
  }
  return HostValue::from_bool(value != 0);
}

}  // namespace cinch
