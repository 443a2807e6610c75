// Parameters: one value, three forms. Values are doubles at the door: every f32 and every integer
// below 2^53 is one.
#include "runtime/session/parameters.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "runtime/core/lang.h"

namespace cinch::rt {
namespace {

std::string number_text(double value) {
  return fmt::format("{}", value);
}

bool is_integer_range(const ParamInfo& param) {
  return is_int(param.dtype) && param.range && param.range->low && param.range->high &&
         !param.range->low_open && !param.range->high_open;
}

bool is_within(const ParamRange& range, double value) {
  if (std::isnan(value)) return false;
  if (range.low && (range.low_open ? value <= *range.low : value < *range.low)) return false;
  if (range.high && (range.high_open ? value >= *range.high : value > *range.high)) return false;
  return true;
}

// The value that a parameter of the type has when it is bound to `value`: floats round to the type.
bool is_value_of(DType dtype, double value) {
  if (is_float(dtype)) return true;
  if (is_bool(dtype)) return value == 0 || value == 1;
  // Above 2^53 doubles skip integers: what is bound could not be told from its neighbours.
  constexpr double kExact = 9007199254740992.0;
  return std::trunc(value) == value && std::fabs(value) <= kExact &&
         value >= static_cast<double>(min_int(dtype)) &&
         value <= static_cast<double>(max_int(dtype));
}

HostType natural_host_type(DType dtype) {
  if (is_bool(dtype)) return HostType::Bool;
  if (is_int(dtype)) return HostType::Int;
  return dtype == kF64 ? HostType::F64 : HostType::F32;
}

HostValue host_value(HostType type, double value) {
  switch (type) {
    case HostType::Int:
      return HostValue::from_int(static_cast<std::int64_t>(value));
    case HostType::F32:
      return HostValue::from_f32(static_cast<float>(value));
    case HostType::F64:
      return HostValue::from_f64(value);
    case HostType::Bool:
      return HostValue::from_bool(value != 0);
  }
  return {};
}

// The nearest value of a float type up to f32, as f32.
float rounded_to(DType dtype, double value) {
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

std::uint64_t kernel_word(DType dtype, double value) {
  if (dtype == kF64) return std::bit_cast<std::uint64_t>(value);
  if (is_float(dtype)) return std::bit_cast<std::uint32_t>(rounded_to(dtype, value));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string unknown_name(const std::vector<ParamInfo>& params, std::string_view name) {
  std::string text = fmt::format("no parameter {}", name);
  std::size_t best = 3;  // a name with more edits is another name
  std::string suggestion;
  for (const ParamInfo& param : params) {
    const std::size_t distance = edit_distance(name, param.name);
    if (distance >= best) continue;
    best = distance;
    suggestion = param.name;
  }
  return suggestion.empty() ? text : text + fmt::format("; did you mean {}?", suggestion);
}

}  // namespace

std::string range_text(const ParamInfo& param) {
  const ParamRange& range = *param.range;
  if (is_integer_range(param)) {
    return fmt::format("{}..={}", number_text(*range.low), number_text(*range.high));
  }
  return fmt::format("{}{}, {}{}", range.low && !range.low_open ? '[' : '(',
                     range.low ? number_text(*range.low) : "-inf",
                     range.high ? number_text(*range.high) : "inf",
                     range.high && !range.high_open ? ']' : ')');
}

Status check_parameter(const ParamInfo& param, double value) {
  if (!is_value_of(param.dtype, value)) {
    return fail(ErrorKind::OutOfRange, fmt::format("parameter {} = {} is no {}", param.name,
                                                   number_text(value), dtype_name(param.dtype)));
  }
  if (param.range && !is_within(*param.range, value)) {
    return fail(ErrorKind::OutOfRange, fmt::format("parameter {} = {} is outside {}", param.name,
                                                   number_text(value), range_text(param)));
  }
  return Ok{};
}

ParameterValues::ParameterValues(const ProgramInfo& info) : params_(info.params) {
  for (const ParamInfo& param : params_) host_types_.push_back(natural_host_type(param.dtype));
  // A formula may ask for another type than the natural one: the node says which.
  for (std::size_t i = 0; i < info.exprs.num_nodes(); ++i) {
    const HostExprNode& node = info.exprs.node(HostExprId(i));
    if (node.op == HostOp::Param && node.payload < host_types_.size()) {
      host_types_[node.payload] = node.type;
    }
  }
  values_.resize(params_.size());
  words_.resize(params_.size());
  host_values_.resize(params_.size());
  for (std::size_t i = 0; i < params_.size(); ++i) update(i, params_[i].default_value);
}

Status ParameterValues::set(std::string_view name, double value) {
  for (std::size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].name != name) continue;
    if (Status status = check_parameter(params_[i], value); !status) return status;
    update(i, value);
    return Ok{};
  }
  return fail(ErrorKind::InvalidArgument, unknown_name(params_, name));
}

void ParameterValues::update(std::size_t index, double value) {
  values_[index] = value;
  words_[index] = kernel_word(params_[index].dtype, value);
  const double held =
      is_narrow_float(params_[index].dtype) ? rounded_to(params_[index].dtype, value) : value;
  host_values_[index] = host_value(host_types_[index], held);
}

}  // namespace cinch::rt
