// Binding of parameters to values.
#include "dsl/sema/compose/items.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "dsl/sema/composition.h"
#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/params.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

// Run-time parameters are kept as f64, which holds all integers up to here exactly.
constexpr double kMostWhole = 9007199254740992;  // 2^53

bool is_kept_whole(const Constant& number) {
  if (number.is_big || number.value.type != HostType::Int) {
    return std::abs(number.to_double()) <= kMostWhole;
  }
  constexpr auto kMost = static_cast<std::int64_t>(kMostWhole);
  return number.value.as_int() >= -kMost && number.value.as_int() <= kMost;
}

constexpr const char* kHandedOn = "the parameter that it is handed on to";

std::string whole_text(const Constant& number) {
  if (number.is_big) return std::to_string(number.value.bits);
  if (number.value.type == HostType::Int) return std::to_string(number.value.as_int());
  return fmt::format("{:.17g}", number.to_double());
}

}  // namespace

void Parameters::open(Spec& spec, bool is_carrier) {
  is_carrier_ = is_carrier;
  for (const OpenParam& open : open_params(spec)) {
    const auto outside = open.spec->outside.find(open.param->name.text);
    const bool is_passed_on = outside != open.spec->outside.end();
    const std::string carried = is_passed_on ? outside->second : "again." + open.name;
    open_names_.push_back({open.param, {open.spec, is_carrier ? carried : open.name}});
  }
}

std::string Parameters::open_name(const Instance& instance, const ast::Param& param) const {
  for (const auto& [open, entry] : open_names_) {
    if (open == &param && entry.first == instance.spec) return entry.second;
  }
  return instance.prefix + param.name.text;
}

void Parameters::check_bindings(const std::vector<Binding>& bindings, Span span) {
  for (const Binding& binding : bindings) {
    std::vector<std::string_view> names;
    names.reserve(open_names_.size());
    for (const auto& [param, entry] : open_names_) names.push_back(entry.second);
    if (std::find(names.begin(), names.end(), binding.name) != names.end()) {
      bindings_[binding.name] = binding;
      continue;
    }
    auto& diag = reporter_.report<DiagKind::UnknownParameter>(span, out_.info.name,
                                                              "`" + binding.name + "`");
    const std::string_view near = dsl::nearest_name(binding.name, names);
    if (!near.empty()) {
      diag.note("did you mean `" + std::string(near) + "`?");
    } else {
      diag.note(names_text("its parameters:", names));
    }
  }
}

std::optional<rt::ParamRange> Parameters::param_range(const ast::Param& param, DType type) {
  if (!param.range.has_value()) return std::nullopt;
  const ast::Interval& interval = tree()[param.range];
  const auto low = all_.numbers.constant_number(interval.lo),
             high = all_.numbers.constant_number(interval.hi);
  if (!low || !high) return std::nullopt;
  rt::ParamRange range;
  const double lo = low->bound_to(type).to_double(), hi = high->bound_to(type).to_double();
  if (!std::isinf(lo)) range.low = lo;
  if (!std::isinf(hi)) range.high = hi;
  range.low_open = !interval.includes_lo;
  range.high_open = !interval.includes_hi;
  const bool is_point = lo == hi && interval.includes_lo && interval.includes_hi;
  if (!(lo < hi) && !is_point)
    return mistake<DiagKind::EmptyRange>(interval.span, rt::range_text(range));
  return range;
}

bool Parameters::check_range(const std::string& name, DType dtype, double value,
                             const std::optional<rt::ParamRange>& range, Span span,
                             Span range_span) {
  if (!range || rt::is_within(*range, dtype, value)) return true;
  auto& diag = reporter_.report<DiagKind::ParameterOutOfRange>(
      span, name, rt::outside_text(*range, dtype, value), rt::range_text(*range));
  if (!(range_span == span)) diag.note(range_span, "the range");
  return false;
}

void Parameters::bind_params(Instance& instance) {
  const ast::Compressor& node = *instance.spec->node;
  for (std::uint32_t i = 0; i < node.params.count; ++i) {
    const ast::Param& param = instance.tree()[instance.tree().params.pool[node.params.first + i]];
    if (!param.type.has_value() ||
        !std::holds_alternative<ast::CompressorType>(instance.tree()[param.type].node))
      bind_param(instance, param);
  }
}

// A value from outside. Mistakes are reported at `span` and at the declaration.
std::optional<Constant> Parameters::bound_value(Instance& instance, const ast::Param& param,
                                                const ParamType& type, const Binding& binding,
                                                Span span) {
  const DType dtype = type.dtype;
  const double value = binding.value;
  const auto refuse = [&](const std::string& given, std::string_view what) {
    auto& diag = reporter_.report<DiagKind::ParameterOutOfRange>(span, open_name(instance, param),
                                                                 given, takes_text(type));
    if (!what.empty()) diag.note(fmt::format("`{}` takes {}", open_name(instance, param), what));
    if (!names_of(instance, param).empty()) diag.note(param.name.span, kHandedOn);
    return std::nullopt;
  };
  const std::string_view takes = !type.words.empty() ? ""
                                 : is_bool(dtype)    ? "true or false"
                                 : is_int(dtype)     ? "a whole number"
                                                     : "a number";
  if (!binding.word.empty()) {
    const auto word = std::ranges::find(type.words, binding.word);
    if (word != type.words.end())
      return Constant{HostValue::from_int(word - type.words.begin()), false, {}};
    return refuse("`" + binding.word + "`", takes);
  }
  if (is_bool(dtype)) {
    if (value == 0 || value == 1) return Constant{HostValue::from_bool(value != 0), false, {}};
    return refuse(fmt::format("{}", value), takes);
  }
  if (is_int(dtype) && type.words.empty() && value != std::floor(value))
    return refuse(fmt::format("{}", value), takes);
  const bool is_whole = value == std::floor(value) && std::abs(value) <= kMostWhole;
  return Constant{is_whole && !is_float(dtype)
                      ? HostValue::from_int(static_cast<std::int64_t>(value))
                      : HostValue::from_f64(value),
                  false,
                  {}};
}

// A value that the parameter may have, for checks without compilation.
Constant Parameters::stand_in(const ParamType& type) const {
  const DType dtype = type.dtype;
  const std::optional<rt::ParamRange>& range = type.range;
  if (is_bool(dtype)) return {HostValue::from_bool(false), false, {}};
  const double end = range && range->low    ? *range->low + (range->low_open ? 1 : 0)
                     : range && range->high ? *range->high - (range->high_open ? 1 : 0)
                                            : 1;
  if (!is_float(dtype)) return {HostValue::from_int(static_cast<std::int64_t>(end)), false, {}};
  if (!range || !range->low || !range->high) return {HostValue::from_f64(end), false, {}};
  return {HostValue::from_f64(0.5 * (*range->low + *range->high)), false, {}};
}

bool Parameters::may_have(const Instance& instance, const ast::Param& param, const ParamType& type,
                          const Constant& value, Span span) {
  const double number = value.to_double();
  const bool is_open = !instance.spec->fixed.contains(param.name.text) && !param.is_const;
  if (is_int(type.dtype) && is_open && !is_kept_whole(value))
    return mistake<DiagKind::ParameterOutOfRange>(span, open_name(instance, param),
                                                  whole_text(value), "[-2^53, 2^53]");
  if (!type.words.empty() && type.range && !rt::is_within(*type.range, type.dtype, number))
    return mistake<DiagKind::ParameterOutOfRange>(span, open_name(instance, param),
                                                  fmt::format("{}", number), takes_text(type));
  Span range_span = param.range.has_value() ? tree()[param.range].span : span;
  for (const NamedParam& name : names_of(instance, param)) {  // a composition's range is narrower
    const auto& range = name.declared->range;
    if (range.has_value()) range_span = name.unit->tree[range].span;
  }
  return check_range(open_name(instance, param), type.dtype, number, type.range, span,
                     range_span) &&
         !conversions_.coerce(all_.numbers.constant(value, span), type.dtype).is_error();
}

std::optional<ParamType> Parameters::declared_type(const ast::Param& param) {
  const auto* words = std::get_if<ast::EnumType>(&tree()[param.type].node);
  if (words == nullptr) {
    const auto dtype = FOUND(conversions_.dtype_of(param.type));
    return ParamType{dtype, param_range(param, dtype), {}};
  }
  ParamType type{kU32, rt::ParamRange{}, {}};
  for (const ast::Name& word : words->names) type.words.push_back(word.text);
  type.range->low = 0;
  type.range->high = static_cast<double>(type.words.size()) - 1;
  return type;
}

std::string Parameters::takes_text(const ParamType& type) {
  if (type.words.empty()) return dtype_name(type.dtype);
  return fmt::format("{{{}}}", fmt::join(type.words, ", "));
}

std::optional<Constant> Parameters::default_of(const ast::Param& param, DType dtype) {
  if (const auto word = word_given(tree(), param, tree(), param.initial)) return word;
  if (is_wrong_word(tree(), param, *env_->unit, param.initial, reporter_)) return std::nullopt;
  const auto number = all_.numbers.constant_number(param.initial);
  return number ? std::optional(number->bound_to(dtype)) : std::nullopt;
}

// Checks the default even if a value is given, since later calls of the compiled program may use
// it.
void Parameters::bind_param(Instance& instance, const ast::Param& param) {
  const auto declared = param.type.has_value() ? declared_type(param) : std::optional<ParamType>();
  const std::optional<DType> dtype = declared ? std::optional(declared->dtype) : std::nullopt;
  if (!param.type.has_value()) {
    reporter_.report<DiagKind::BadType>(param.name.span, "a type of this parameter", "none");
  }
  Symbol failed;
  failed.span = param.name.span;
  const auto fail = [&] { all_.items.declare_item(instance, param.name, failed); };
  if (!dtype) return fail();
  ParamType type = *declared;
  for (std::size_t i = 0; i < type.words.size(); ++i) declare_word(instance, param, i);
  const std::vector<NamedParam>& named = names_of(instance, param);
  for (const NamedParam& name : named) {
    if (!take_named(name, param, type)) return fail();
  }
  // Parameters with equal names are one: those that a composition passes on, and in a carrier those
  // that the program passes on.
  SharedName shared{named.empty() ? nullptr : named.back().declared, ""};
  const auto outer = instance.spec->outside.find(param.name.text);
  if (is_carrier_ && outer != instance.spec->outside.end()) shared = {nullptr, outer->second};
  if (named_params_.contains(shared)) return share_param(instance, param, shared, type);
  const auto fixed = instance.spec->fixed.find(param.name.text);
  if (fixed != instance.spec->fixed.end()) {
    const Span span = instance.spec->fixed_spans.at(param.name.text);
    const Constant number = fixed->second.bound_to(*dtype);
    if (!may_have(instance, param, type, number, span)) return fail();
    return bind_constant(instance, param, *dtype, number);
  }
  std::optional<Constant> initial, value;
  // Mistakes in a bound value are reported at the parameter that is visible from outside.
  Span span = named.empty() ? param.name.span : named.back().declared->name.span;
  NamedParam at{&instance.unit(), &param};
  for (const NamedParam& name : named) {
    if (name.declared->initial.has_value()) at = name;
  }
  if (at.declared->initial.has_value()) {
    span = at.unit->tree[at.declared->initial].span;
    Environment outside{at.unit, nullptr, {Scope{}}};
    all_.exprs.with_environment(at.declared == &param ? *env_ : outside,
                                [&] { initial = value = default_of(*at.declared, *dtype); });
    if (!initial || !may_have(instance, param, type, *initial, span)) return fail();
  }
  const auto bound = bindings_.find(open_name(instance, param));
  if (bound != bindings_.end()) {
    value = bound_value(instance, param, type, bound->second, span);
    if (!value || !may_have(instance, param, type, *value, span)) return fail();
  } else if (!initial) {
    if (!mode_.is_check) {
      reporter_.report<DiagKind::ParameterUnbound>(span, open_name(instance, param));
      return fail();
    }
    value = stand_in(type);
    if (!may_have(instance, param, type, *value, param.name.span)) return fail();
  }
  if (!value) return fail();
  if (param.is_const) return bind_constant(instance, param, *dtype, *value);
  add_param(instance, param, type, value->to_double(),
            initial ? std::optional(initial->to_double()) : std::nullopt);
  if (shared.first != nullptr || !shared.second.empty()) {
    named_params_[shared] = instance.names.at(param.name.text);
  }
}

const std::vector<NamedParam>& Parameters::names_of(const Instance& instance,
                                                    const ast::Param& param) {
  static const std::vector<NamedParam> kNone;
  const auto named = instance.spec->named.find(param.name.text);
  return named == instance.spec->named.end() ? kNone : named->second;
}

// Another compressor already uses this parameter: it must suit both.
void Parameters::share_param(Instance& instance, const ast::Param& param, const SharedName& shared,
                             const ParamType& type) {
  const Symbol& symbol = named_params_.at(shared);
  rt::ParamInfo& info = out_.info.params[symbol.index];
  info.range = rt::intersection(info.range, type.range);
  prover_.set_param_range(symbol.index, info.range);
  const Span span = shared.first != nullptr ? shared.first->name.span : param.name.span;
  check_range(info.name, info.dtype, info.default_value, info.range, span, span);
  all_.items.declare_item(instance, param.name, symbol);
}

// Checks a parameter that a composition passes on: it must have the same type, and a range inside
// the compressor's own.
bool Parameters::take_named(const NamedParam& named, const ast::Param& param, ParamType& type) {
  Environment env{named.unit, nullptr, {Scope{}}};
  std::optional<ParamType> declared;
  all_.exprs.with_environment(env, [&] { declared = declared_type(*named.declared); });
  if (!declared) return false;
  if (declared->dtype != type.dtype || declared->words != type.words) {
    reporter_
        .report<DiagKind::Mismatch>(named.declared->name.span, takes_text(type),
                                    takes_text(*declared))
        .note(param.name.span, kHandedOn);
    return false;
  }
  type.range = rt::intersection(type.range, declared->range);
  return true;
}

void Parameters::bind_constant(Instance& instance, const ast::Param& param, DType dtype,
                               Constant value) {
  const double number = value.to_double();
  // A run-time parameter that a composition fixes keeps its precision: bodies see it in its own
  // type, sizes see the given number.
  if (is_float(dtype)) {
    value = {param.is_const || dtype == kF64 ? HostValue::from_f64(number)
                                             : HostValue::from_f32(static_cast<float>(number)),
             false,
             {}};
  }
  Symbol symbol{.value = all_.numbers.constant(value, param.name.span), .span = param.name.span};
  if (is_float(dtype)) symbol.given = pool().const_f64(number);
  out_.info.constants.push_back({open_name(instance, param), number});
  all_.items.declare_item(instance, param.name, std::move(symbol));
}

std::string Parameters::declared_as(const rt::ParamInfo& info) {
  const ParamType type{info.dtype, info.range, info.words};
  return info.is_input ? takes_text(type) : "the parameter " + info.name;
}

std::optional<Symbol> Parameters::input_scalar(const ast::InputItem& node) {
  const ast::Param param{.name = node.name, .type = node.type, .range = node.range};
  ParamType type = FOUND(declared_type(param));
  const auto differs = [&](const std::string& known) -> std::optional<Symbol> {
    reporter_.report<DiagKind::InputDiffers>(node.name.span, node.name.text, takes_text(type),
                                             known);
    return std::nullopt;
  };
  for (const rt::StateInfo& state : out_.info.states) {
    if (state.is_input && state.name == node.name.text)
      return differs(sizes_.type_text(state.type));
  }
  Symbol symbol{.kind = SymbolKind::Param, .span = node.name.span};
  symbol.value.type = scalar_type(type.dtype);
  symbol.is_input = true;
  symbol.noun = "an input";
  const auto known = std::ranges::find(out_.info.params, node.name.text, &rt::ParamInfo::name);
  symbol.index = static_cast<std::uint32_t>(known - out_.info.params.begin());
  if (known == out_.info.params.end()) {
    const double value = stand_in(type).to_double();
    out_.info.params.push_back({node.name.text, type.dtype, value, type.range, type.words, true});
    out_.declared_defaults.emplace_back(value);
  } else {
    if (!known->is_input || known->dtype != type.dtype || known->words != type.words)
      return differs(declared_as(*known));
    type.range = rt::intersection(known->range, type.range);
    known->range = type.range;
    known->default_value = stand_in(type).to_double();
    if (type.range && !rt::is_within(*type.range, known->dtype, known->default_value)) {
      return mistake<DiagKind::EmptyRange>(node.name.span, rt::range_text(*type.range));
    }
    out_.declared_defaults[symbol.index] = known->default_value;
  }
  prover_.set_param_range(symbol.index, type.range);
  return symbol;
}

void Parameters::add_param(Instance& instance, const ast::Param& param, const ParamType& type,
                           double value, std::optional<double> declared_default) {
  Symbol symbol{.kind = SymbolKind::Param,
                .span = param.name.span,
                .index = static_cast<std::uint32_t>(out_.info.params.size())};
  symbol.value.type = scalar_type(type.dtype);
  rt::ParamInfo info{.name = open_name(instance, param),
                     .dtype = type.dtype,
                     .default_value = value,
                     .range = type.range,
                     .words = type.words};
  prover_.set_param_range(symbol.index, type.range);
  out_.info.params.push_back(std::move(info));
  out_.declared_defaults.push_back(declared_default);
  all_.items.declare_item(instance, param.name, std::move(symbol));
}

}  // namespace cinch::sema
