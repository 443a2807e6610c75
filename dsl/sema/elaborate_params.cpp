// Parameters of compressors: ranges, defaults, values from outside and from compositions.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "dsl/sema/elaborator.h"
#include "runtime/core/param_range.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

bool is_compressor_type(const ast::Module& tree, const ast::Param& param) {
  return param.type.has_value() &&
         std::holds_alternative<ast::CompressorType>(tree[param.type].node);
}

}  // namespace

std::string Elaborator::open_name(const Instance& instance, const ast::Param& param) const {
  for (const auto& [open, entry] : open_names_) {
    if (open == &param && entry.first == instance.spec) return entry.second;
  }
  return instance.prefix + param.name.text;
}

void Elaborator::check_bindings(const std::vector<Binding>& bindings, Span span) {
  for (const Binding& binding : bindings) {
    std::vector<std::string_view> names;
    names.reserve(open_names_.size());
    for (const auto& [param, entry] : open_names_) names.push_back(entry.second);
    if (std::find(names.begin(), names.end(), binding.name) != names.end()) {
      bindings_[binding.name] = binding.value;
      continue;
    }
    auto& diag = reporter_.report<DiagKind::UnknownParameter>(span, out_.info.name, binding.name);
    const std::string_view near = dsl::nearest_name(binding.name, names);
    if (!near.empty()) diag.note("did you mean `" + std::string(near) + "`?");
  }
}

std::optional<rt::ParamRange> Elaborator::param_range(const ast::Param& param) {
  if (!param.range.has_value()) return std::nullopt;
  const ast::Interval& interval = tree()[param.range];
  const auto low = constant_value(interval.lo), high = constant_value(interval.hi);
  if (!low || !high) return std::nullopt;
  rt::ParamRange range;
  const double lo = low->to_double(), hi = high->to_double();
  if (!std::isinf(lo)) range.low = lo;
  if (!std::isinf(hi)) range.high = hi;
  range.low_open = !interval.includes_lo;
  range.high_open = !interval.includes_hi;
  const bool is_point = lo == hi && interval.includes_lo && interval.includes_hi;
  if (!(lo < hi) && !is_point) {
    reporter_.report<DiagKind::EmptyRange>(interval.span, rt::range_text(range));
    return std::nullopt;
  }
  return range;
}

bool Elaborator::check_range(const std::string& name, DType dtype, double value,
                             const std::optional<rt::ParamRange>& range, Span span,
                             Span range_span) {
  if (!range || rt::is_within(*range, dtype, value)) return true;
  auto& diag = reporter_.report<DiagKind::ParameterOutOfRange>(
      span, name, rt::outside_text(*range, dtype, value), rt::range_text(*range));
  if (!(range_span == span)) diag.note(range_span, "the range");
  return false;
}

void Elaborator::bind_params(Instance& instance) {
  const ast::Compressor& node = *instance.spec->node;
  for (std::uint32_t i = 0; i < node.params.count; ++i) {
    const ast::Param& param = instance.tree()[instance.tree().params.pool[node.params.first + i]];
    if (!is_compressor_type(instance.tree(), param)) bind_param(instance, param);
  }
}

// The value of a parameter that no composition fixes: bound from outside, else its default.
std::optional<HostValue> Elaborator::open_value(Instance& instance, const ast::Param& param,
                                                DType dtype,
                                                const std::optional<rt::ParamRange>& range) {
  const auto bound = bindings_.find(open_name(instance, param));
  if (bound != bindings_.end()) {
    const bool is_whole =
        bound->second == std::floor(bound->second) && std::abs(bound->second) < 9.0e15;
    if (is_bool(dtype)) return HostValue::from_bool(bound->second != 0);
    return is_whole && !is_float(dtype)
               ? HostValue::from_int(static_cast<std::int64_t>(bound->second))
               : HostValue::from_f64(bound->second);
  }
  if (param.initial.has_value()) return constant_value(param.initial);
  if (!is_check_) {
    reporter_.report<DiagKind::ParameterUnbound>(param.name.span, open_name(instance, param));
    return std::nullopt;
  }
  const double stand_in = range && range->low    ? *range->low + (range->low_open ? 1 : 0)
                          : range && range->high ? *range->high - (range->high_open ? 1 : 0)
                                                 : 1;
  if (is_bool(dtype)) return HostValue::from_bool(false);
  return is_float(dtype) ? HostValue::from_f64(range && range->high && range->low
                                                   ? 0.5 * (*range->low + *range->high)
                                                   : stand_in)
                         : HostValue::from_int(static_cast<std::int64_t>(stand_in));
}

void Elaborator::bind_param(Instance& instance, const ast::Param& param) {
  const auto dtype = param.type.has_value() ? dtype_of(param.type) : std::nullopt;
  if (!param.type.has_value()) {
    reporter_.report<DiagKind::BadType>(param.name.span, "a type of this parameter", "none");
  }
  Symbol failed;
  failed.span = param.name.span;
  if (!dtype) return declare_item(instance, param.name, failed);
  const auto range = param_range(param);
  const auto fixed = instance.spec->fixed.find(param.name.text);
  const bool is_fixed = fixed != instance.spec->fixed.end();
  const auto value =
      is_fixed ? std::optional(fixed->second) : open_value(instance, param, *dtype, range);
  const Span span = is_fixed                    ? instance.spec->fixed_spans.at(param.name.text)
                    : param.initial.has_value() ? tree()[param.initial].span
                                                : param.name.span;
  if (!value) return declare_item(instance, param.name, failed);
  const Value typed_value = coerce(host(pool().constant(*value), span), *dtype);
  const Span range_span = param.range.has_value() ? tree()[param.range].span : span;
  const bool is_inside =
      check_range(open_name(instance, param), *dtype, value->to_double(), range, span, range_span);
  if (typed_value.is_error() || !is_inside) return declare_item(instance, param.name, failed);
  if (is_fixed || param.is_const) return bind_constant(instance, param, *dtype, *value);
  add_param(instance, param, *dtype, *value, range);
}

void Elaborator::bind_constant(Instance& instance, const ast::Param& param, DType dtype,
                               HostValue value) {
  const double number = value.to_double();
  // A run-time parameter that a composition fixes keeps the precision it would have had: in bodies
  // that of its type, in sizes what is given.
  if (is_float(dtype)) {
    value = param.is_const || dtype == kF64 ? HostValue::from_f64(number)
                                            : HostValue::from_f32(static_cast<float>(number));
  }
  Symbol symbol;
  symbol.span = param.name.span;
  symbol.value = host(pool().constant(value), param.name.span);
  if (is_float(dtype)) symbol.given = pool().const_f64(number);
  out_.info.constants.push_back({open_name(instance, param), number});
  declare_item(instance, param.name, std::move(symbol));
}

std::optional<double> Elaborator::declared_default(const ast::Param& param, DType dtype,
                                                   const std::optional<rt::ParamRange>& range) {
  if (!param.initial.has_value()) return std::nullopt;
  const auto value = constant_value(param.initial);
  if (!value) return std::nullopt;
  const double number = value->to_double();
  return range && !rt::is_within(*range, dtype, number) ? std::nullopt : std::optional(number);
}

void Elaborator::add_param(Instance& instance, const ast::Param& param, DType dtype,
                           HostValue value, const std::optional<rt::ParamRange>& range) {
  Symbol symbol;
  symbol.kind = SymbolKind::Param;
  symbol.span = param.name.span;
  symbol.index = static_cast<std::uint32_t>(out_.info.params.size());
  symbol.value.type = scalar(dtype);
  rt::ParamInfo info;
  info.name = open_name(instance, param);
  info.dtype = dtype;
  info.default_value = value.to_double();
  info.range = range;
  sizes_.set_param_range(symbol.index, range);
  out_.info.params.push_back(std::move(info));
  out_.declared_defaults.push_back(declared_default(param, dtype, range));
  declare_item(instance, param.name, std::move(symbol));
}

}  // namespace cinch::sema
