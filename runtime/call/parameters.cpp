// Parameters: one value in three forms. Callers pass doubles, which hold every f32 and every
// integer below 2^53.
#include "runtime/call/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/core/nearest_name.h"
#include "runtime/core/numbers/parse_number.h"
#include "runtime/core/params.h"

namespace cinch::rt {
namespace {

std::uint64_t kernel_word(DType dtype, double value) {
  if (dtype == kF64) return std::bit_cast<std::uint64_t>(value);
  if (is_float(dtype)) return std::bit_cast<std::uint32_t>(round_to_float(dtype, value));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

std::string unknown_name(const std::vector<ParamInfo>& params, std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(params.size());
  for (const ParamInfo& param : params) names.push_back(param.name);
  const std::string_view near = nearest_name(name, names);
  const std::string text = fmt::format("no parameter {}", name);
  return near.empty() ? text : fmt::format("{}; did you mean {}?", text, near);
}

}  // namespace

std::string words_text(const ParamInfo& param) {
  return fmt::format("{}", fmt::join(param.words, ", "));
}

Result<double> parameter_value(const ParamInfo& param, std::string_view text) {
  const auto word = std::ranges::find(param.words, text);
  if (word != param.words.end()) return static_cast<double>(word - param.words.begin());
  const bool is_truth = text == "true" || text == "false";
  if (is_truth && is_bool(param.dtype)) return text == "true" ? 1 : 0;
  if (const auto number = parse_number(text)) return *number;
  return fail(
      ErrorKind::OutOfRange,
      fmt::format("parameter {} = {} is not a value of {}", param.name, text,
                  param.words.empty() ? dtype_name(param.dtype) : "{" + words_text(param) + "}"));
}

Result<const ParamInfo*> find_parameter(const std::vector<ParamInfo>& params,
                                        std::string_view name) {
  const auto found = std::ranges::find(params, name, &ParamInfo::name);
  if (found == params.end()) return fail(ErrorKind::InvalidArgument, unknown_name(params, name));
  return &*found;
}

Status check_parameter(const ParamInfo& param, double value) {
  if (!is_value_of(param.dtype, value)) {
    return fail(ErrorKind::OutOfRange, fmt::format("parameter {} = {} is not a value of {}",
                                                   param.name, value, dtype_name(param.dtype)));
  }
  if (!param.words.empty() && (value < 0 || value >= static_cast<double>(param.words.size()))) {
    return fail(ErrorKind::OutOfRange,
                fmt::format("parameter {} = {} is outside {{{}}}, whose words are "
                            "numbered from 0 on",
                            param.name, value, words_text(param)));
  }
  if (param.range && !is_within(*param.range, param.dtype, value)) {
    return fail(ErrorKind::OutOfRange, fmt::format("parameter {} = {} is outside {}", param.name,
                                                   outside_text(*param.range, param.dtype, value),
                                                   range_text(param.dtype, *param.range)));
  }
  return Ok{};
}

ParameterValues::ParameterValues(const ProgramInfo& info) : params_(info.params) {
  for (std::uint32_t i = 0; i < params_.size(); ++i) {
    host_types_.push_back(param_type(info.exprs, i, params_[i].dtype));
  }
  values_.resize(params_.size());
  words_.resize(params_.size());
  given_words_.resize(params_.size());
  host_values_.resize(params_.size());
  for (std::size_t i = 0; i < params_.size(); ++i) update(i, params_[i].default_value);
}

Status ParameterValues::set(std::string_view name, double value) {
  for (std::size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].name != name) continue;
    CINCH_TRY(check_parameter(params_[i], value));
    update(i, value);
    return Ok{};
  }
  return fail(ErrorKind::InvalidArgument, unknown_name(params_, name));
}

void ParameterValues::update(std::size_t index, double value) {
  values_[index] = value;
  const DType dtype = params_[index].dtype;
  words_[index] = kernel_word(dtype, value);
  given_words_[index] = kernel_word(is_float(dtype) ? kF64 : dtype, value);
  host_values_[index] = make_param_value(dtype, host_types_[index], value);
}

}  // namespace cinch::rt
