// Parameters' values in host expressions.
#include "runtime/core/params.h"

#include <fmt/format.h>

#include <limits>

#include "runtime/core/lang.h"
#include "runtime/core/sizes/host_expr.h"

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

namespace cinch::rt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double rounded(DType dtype, double value) {
  return is_float(dtype) && dtype != kF64 ? round_to_float(dtype, value) : value;
}

}  // namespace

// Rounding is monotone: it moves no value past a closed end, but may move one onto an open end.
bool is_within(const ParamRange& range, DType dtype, double value) {
  if (std::isnan(value)) return false;
  const double low = range.low.value_or(-kInfinity), high = range.high.value_or(kInfinity);
  const double held = rounded(dtype, value);
  return (range.low_open ? low < value && low < held : low <= value) &&
         (range.high_open ? value < high && held < high : value <= high);
}

std::optional<ParamRange> intersection(const std::optional<ParamRange>& a,
                                       const std::optional<ParamRange>& b) {
  if (!a || !b) return a ? a : b;
  ParamRange both = *a;
  if (b->low && (!both.low || *b->low >= *both.low)) {
    both.low_open = b->low_open || (both.low == b->low && both.low_open);
    both.low = b->low;
  }
  if (b->high && (!both.high || *b->high <= *both.high)) {
    both.high_open = b->high_open || (both.high == b->high && both.high_open);
    both.high = b->high;
  }
  return both;
}

std::string outside_text(const ParamRange& range, DType dtype, double value) {
  if (!is_within(range, kF64, value)) return fmt::format("{}", value);
  return fmt::format("{} ({} as {})", value, rounded(dtype, value), dtype_name(dtype));
}

std::string range_text(const ParamRange& range) {
  const bool shows_closed_low = range.low && !range.low_open;
  const bool shows_closed_high = range.high && !range.high_open;
  return fmt::format("{}{}, {}{}", shows_closed_low ? '[' : '(', range.low.value_or(-kInfinity),
                     range.high.value_or(kInfinity), shows_closed_high ? ']' : ')');
}

std::string range_text(DType dtype, const ParamRange& range) {
  if (is_int(dtype) && range.low && range.high && !range.low_open && !range.high_open) {
    return fmt::format("{}..={}", *range.low, *range.high);
  }
  return range_text(range);
}

}  // namespace cinch::rt
