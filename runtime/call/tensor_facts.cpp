// Parameters: one value in three forms. Callers pass doubles, which hold every f32 and every
// integer below 2^53.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/call/list_call.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/core/log.h"
#include "runtime/core/numbers/parse_number.h"
#include "runtime/core/params.h"
#include "runtime/core/sizes/host_range.h"

namespace cinch::rt {
static constexpr std::int64_t kMaxElems = (std::int64_t{1} << 32) - 1;

Status check_facts(const TensorFacts& facts) {
  const std::int64_t rows = facts.rows, cols = facts.cols;
  if (rows < 0 || cols < 0 || (rows > 0 && cols > kMaxElems / rows)) {
    return fail(
        ErrorKind::InvalidArgument,
        fmt::format("shape [{}, {}]: from 0 to 2^32 - 1 elements are possible", rows, cols));
  }
  if (facts.world < 1 || facts.worker >= facts.world) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("worker {} of {} ranks", facts.worker, facts.world));
  }
  return Ok{};
}

Status check_step(std::uint64_t step) {
  if (step <= std::uint64_t{kMostStep}) return Ok{};
  return fail(ErrorKind::InvalidArgument, fmt::format("step {}: at most 2^56 - 1", step));
}

TensorFacts facts_for(const ProgramInfo& info, const TensorFacts& given) {
  TensorFacts facts = given;
  if (!info.is_matrix) {
    facts.rows = given.num_elems();
    facts.cols = 1;
  }
  return facts;
}

HostEnv host_env(const TensorFacts& facts, const ParameterValues& parameters, std::uint64_t step) {
  HostEnv env{.n = facts.num_elems(),
              .rows = facts.rows,
              .cols = facts.cols,
              .world = facts.world,
              .step = static_cast<std::int64_t>(step),
              .worker = facts.worker,
              .machine_ranks = facts.machine_ranks,
              .params = parameters.host_values()};
  return env;
}

DrawWords draw_words(const TensorFacts& facts, std::uint64_t step) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  return {low(facts.seed), low(facts.seed >> 32), low(step),    low(step >> 32),
          facts.tensor,    facts.piece,           facts.worker, 0};
}

PayloadHeader payload_header(const ProgramInfo& info,
                             const std::array<std::uint64_t, 2>& fingerprint,
                             const TensorFacts& facts, const ParameterValues& parameters,
                             std::uint64_t step) {
  PayloadHeader header{
      .fingerprint = fingerprint,
      .decode_hash = decode_hash(info, {parameters.given_words(), facts.world, facts.seed, step,
                                        facts.tensor, facts.piece}),
      .rows = facts.rows,
      .cols = facts.cols};
  return header;
}

Result<std::int64_t> state_bytes(const ProgramInfo& info, const StateInfo& state,
                                 const HostEnv& env) {
  std::int64_t elems = 1;
  for (int i = 0; i < state.type.rank; ++i) {
    auto dim = TRY(info.exprs->eval_int(state.type.dims[i], env));
    std::int64_t product = 0;
    if (dim < 0 || __builtin_mul_overflow(elems, dim, &product) || product > kMaxBufferBytes) {
      return fail(ErrorKind::Overflow, fmt::format("state {}: the size `{}` is {}", state.name,
                                                   info.exprs->print(state.type.dims[i]), dim));
    }
    elems = product;
  }
  return packed_bytes(state.type.dtype, elems);
}

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
  const std::string_view noun = param.is_input ? "input" : "parameter";
  if (param.is_input && !std::isfinite(value)) {
    return fail(ErrorKind::OutOfRange,
                fmt::format("input {} = {} is not finite", param.name, value));
  }
  if (!is_value_of(param.dtype, value)) {
    return fail(ErrorKind::OutOfRange, fmt::format("{} {} = {} is not a value of {}", noun,
                                                   param.name, value, dtype_name(param.dtype)));
  }
  if (!param.words.empty() && (value < 0 || value >= static_cast<double>(param.words.size()))) {
    return fail(ErrorKind::OutOfRange, fmt::format("{} {} = {} is outside {{{}}}, whose words are "
                                                   "numbered from 0 on",
                                                   noun, param.name, value, words_text(param)));
  }
  if (param.range && !is_within(*param.range, param.dtype, value)) {
    return fail(ErrorKind::OutOfRange, fmt::format("{} {} = {} is outside {}", noun, param.name,
                                                   outside_text(*param.range, param.dtype, value),
                                                   range_text(param.dtype, *param.range)));
  }
  return Ok{};
}

ParameterValues::ParameterValues(const ProgramInfo& info) : params_(info.params) {
  for (std::uint32_t i = 0; i < params_.size(); ++i) {
    host_types_.push_back(param_type(*info.exprs, i, params_[i].dtype));
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
  // Neither formulas nor `decode` depend on an input.
  if (params_[index].is_input) value = params_[index].default_value;
  given_words_[index] = kernel_word(is_float(dtype) ? kF64 : dtype, value);
  host_values_[index] = make_param_value(dtype, host_types_[index], value);
}

GivenInputs::GivenInputs(const ProgramInfo& info, Of which) {
  for (const ParamInfo& param : info.params) {
    if (param.is_input) names_.push_back(param.name);
  }
  for (const StateInfo& state : info.states) {
    if (state.is_input && which == Of::All) names_.push_back(state.name);
  }
  has_value_.resize(names_.size());
}

void GivenInputs::note(std::string_view name) {
  const auto at = std::ranges::find(names_, name);
  if (at == names_.end()) return;
  if (step_) has_value_.assign(names_.size(), false);
  step_.reset();
  has_value_[static_cast<std::size_t>(at - names_.begin())] = true;
}

Status GivenInputs::use(std::uint64_t step) {
  if (names_.empty()) return Ok{};
  const bool is_of_step = !step_ || *step_ == step;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (is_of_step && has_value_[i]) continue;
    return fail(ErrorKind::InvalidArgument,
                fmt::format("the input {} has no value in step {}: hand it over with the gradient, "
                            "in every step",
                            names_[i], step));
  }
  step_ = step;
  return Ok{};
}

Result<std::uint32_t> find_input_array(const ProgramInfo& info, std::string_view name) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < info.states.size(); ++i) {
    if (!info.states[i].is_input) continue;
    if (info.states[i].name == name) return i;
    names.push_back(info.states[i].name);
  }
  const bool is_scalar = std::ranges::any_of(
      info.params, [&](const ParamInfo& param) { return param.is_input && param.name == name; });
  const std::string what = is_scalar       ? "is a number, not an array"
                           : names.empty() ? "is not an input of " + info.name
                                           : fmt::format("is not an input of {}, which has {}",
                                                         info.name, fmt::join(names, ", "));
  return fail(ErrorKind::InvalidArgument, fmt::format("{} {}", name, what));
}

Status check_input_array(std::string_view name, const ConstTensorView& array, std::int64_t wanted) {
  Status status = check_tensor_dtype(array.dtype);
  if (status && array.num_elems != wanted) {
    status = fail(ErrorKind::InvalidArgument,
                  fmt::format("{} elements, the tensor has {}", array.num_elems, wanted));
  }
  if (status && array.data == nullptr && wanted > 0) {
    status = fail(ErrorKind::InvalidArgument, "a null array");
  }
  if (!status) status.error().message = fmt::format("input {}: {}", name, status.error().message);
  return status;
}

}  // namespace cinch::rt
