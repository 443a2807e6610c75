// Silent conversions, `as`, and the default types of values.
#include "dsl/sema/types/conversions.h"

#include <algorithm>
#include <bit>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

static bool is_wide_float(DType type) {
  return type == kF32 || type == kF64;
}

Value Conversions::literal(HostExprId constant, DType to, Span span) {
  const HostValue value = pool().const_value(constant);
  Expr expr{ExprKind::Literal, scalar_type(to), span};
  if (is_float(to)) {
    // Rounds only once: f64 does not hold every integer that f32 rounds.
    const float single = value.type == HostType::Int ? static_cast<float>(value.as_int())
                                                     : static_cast<float>(value.to_double());
    expr.bits =
        std::bit_cast<std::uint64_t>(to == kF64 ? value.to_double() : static_cast<double>(single));
  } else {
    expr.bits = value.type == HostType::Bool || value.type == HostType::Int
                    ? value.bits
                    : static_cast<std::uint64_t>(static_cast<std::int64_t>(value.to_double()));
  }
  return build_.typed(std::move(expr));
}

Value Conversions::materialize(const Value& value) {
  if (value.kind == ValueKind::Table) {
    if (types_.is_exact_float(value)) return coerce(value, kF32);
    if (holds_big(value)) return coerce(value, kU64);
    if (types_.is_bool_table(value)) return coerce(value, kBool);
    const auto all_fit = [&](DType type) {
      return std::ranges::all_of(value.table, [&](HostExprId element) {
        return pool().type(element) != HostType::Int ||
               fits(pool().const_value(element).as_int(), type);
      });
    };
    const bool is_u32 = value.is_hex && all_fit(kU32);
    return coerce(value, all_fit(kI32) ? kI32 : is_u32 ? kU32 : kI64);
  }
  if (value.is_typed() && value.is_exact) {
    Value result = value;
    result.is_exact = false;
    result.remake.reset();
    return result;
  }
  if (!value.is_host()) return value;
  if (value.is_big) return coerce(value, kU64);
  if (value.declared) return coerce(value, *value.declared);
  switch (pool().type(value.host)) {
    case HostType::Bool:
      return coerce(value, kBool);
    case HostType::F32:
    case HostType::F64:
      return coerce(value, kF32);
    case HostType::Int:
      break;
  }
  const bool is_small =
      pool().is_const(value.host) && fits(pool().const_value(value.host).as_int(), kI32);
  return coerce(value, is_small ? kI32 : kI64);
}

Value Conversions::big_as_float(const Value& value, DType to) {
  const auto number = static_cast<std::uint64_t>(pool().const_value(value.host).as_int());
  const double rounded =
      to == kF32 ? static_cast<double>(static_cast<float>(number)) : static_cast<double>(number);
  return host_value(pool().const_f64(rounded), value.span);
}

// A silent conversion would change a number that does not fit. An explicit one may.
bool Conversions::is_every_choice_in(const Value& value, DType to) {
  if (!is_int(to)) return true;
  for (const HostExprId number : value.chosen) {
    if (fits(pool().const_value(number).as_int(), to)) continue;
    return mistake<DiagKind::ConstantOutOfRange>(value.span, pool().print(number), dtype_name(to));
  }
  return true;
}

Value Conversions::coerce(const Value& value, DType to) {
  if (value.is_error()) return value;
  if (value.is_big && is_wide_float(to)) return coerce(big_as_float(value, to), to);
  if (is_float(to) && value.quotient != nullptr) return coerce(as_quotient(value), to);
  if (!types_.can_coerce(value, to)) {
    const bool is_value = value.is_host() || value.is_typed() || value.kind == ValueKind::Table;
    if (is_value) {
      reporter_.report<DiagKind::CannotConvert>(value.span, text_.describe(value), dtype_name(to));
    } else {
      reporter_.report<DiagKind::Mismatch>(value.span, dtype_name(to), text_.describe(value));
    }
    return error_value(value.span);
  }
  if (value.kind == ValueKind::Table) {
    Expr table{ExprKind::Table, types_.value_type(value), value.span};
    table.type.dtype = to;
    for (std::size_t i = 0; i < value.table.size(); ++i) {
      const Value made = FOUND(coerce(table_element(value, i), to));
      table.args.push_back(made.expr);
    }
    return build_.typed(std::move(table));
  }
  if (value.is_typed()) {
    if (value.type.dtype == to) {
      Value same = value;
      same.is_exact = false;
      same.remake.reset();
      return same;
    }
    if (value.is_exact && !is_every_choice_in(value, to)) return error_value(value.span);
    const bool is_anew = value.remake != nullptr && (value.is_exact || is_int(to));
    if (is_anew) return value.remake->in_type(to);
    Value result = convert(value, to, value.span);
    if (is_int(to)) result.facts = value.facts;  // floats are not indices
    return result;
  }
  const HostType type = pool().type(value.host);
  if (value.is_big && !is_float(to) && to != kU64)
    return mistake<DiagKind::ConstantOutOfRange>(value.span, text_.number_text(value),
                                                 dtype_name(to));
  // Rounds only once: an f32 would be rounded again.
  if (is_narrow_float(to)) return convert(coerce(value, types_.wide_type(value)), to, value.span);
  if (pool().is_const(value.host)) {
    const bool is_number = type == HostType::Int && is_int(to) && !value.is_big;
    if (is_number && !fits(pool().const_value(value.host).as_int(), to))
      return mistake<DiagKind::ConstantOutOfRange>(value.span, pool().print(value.host),
                                                   dtype_name(to));
    return literal(value.host, to, value.span);
  }
  return size_in_type(value, to);
}

// Converts a number that the host computes before launch.
Value Conversions::size_in_type(const Value& value, DType to) {
  const HostType type = pool().type(value.host);
  if (is_int(to) && value.remake != nullptr) return value.remake->in_type(to);
  if (type == HostType::Int && is_unsigned_int(to) && sizes_.is_never_positive(value.host))
    return mistake<DiagKind::ConstantOutOfRange>(value.span, sizes_.size_text(value.host),
                                                 dtype_name(to));
  Expr size{ExprKind::HostSize, scalar_type(to), value.span};
  size.size = value.host;
  if (is_float(to)) size.size = pool().cast(value.host, to == kF64 ? HostType::F64 : HostType::F32);
  if (type == HostType::Bool && !is_bool(to) && !is_float(to))
    size.size = pool().cast(value.host, HostType::Int);
  return build_.typed(std::move(size));
}

Value Conversions::convert(const Value& value, DType to, Span span) {
  if (value.is_error()) return error_value(span);
  if (is_float(to) && has_quotient(value)) {
    return value.is_typed() ? value.remake->in_type(to) : convert(as_quotient(value), to, span);
  }
  if (value.is_big && is_wide_float(to)) return convert(big_as_float(value, to), to, span);
  if (value.kind == ValueKind::Table) return convert(materialize(value), to, span);
  if (value.declared) {
    Value exact = value;
    exact.declared.reset();
    return convert(exact, to, span);
  }
  const bool is_other = !value.is_typed() || !(value.type.dtype == to);
  if (is_int(to) && !mode_.in_host && is_other && holds_shift(value)) {
    Value shifted = value.remake->in_type(to);
    shifted.span = span;
    return shifted;
  }
  if (value.is_host()) {
    const HostType type = pool().type(value.host);
    const bool is_const = pool().is_const(value.host);
    if (is_wide_float(to) || (type == HostType::Bool && is_bool(to))) {
      Value same = value;
      same.span = span;
      if (mode_.in_host && is_wide_float(to)) {
        const HostExprId number = to == kF32 ? pool().cast(value.host, HostType::F32) : value.host;
        return host_value(pool().cast(number, HostType::F64), span);
      }
      return coerce(same, to);
    }
    if (mode_.in_host && is_int(to))
      return host_value(pool().cast(value.host, HostType::Int), span);
    if (is_const && type == HostType::Int && !value.is_big && is_int(to) &&
        fits(pool().const_value(value.host).as_int(), to)) {
      return literal(value.host, to, span);
    }
    return convert(coerce(value, types_.wide_type(value)), to, span);
  }
  if (!value.is_typed())
    return mistake<DiagKind::Mismatch>(value.span, "a value", text_.describe(value));
  Value result;
  if (value.type.dtype == to) {
    result = value;
    result.is_exact = false;
    result.remake.reset();
    return result;
  }
  Expr expr{ExprKind::Convert, value.type, span};
  expr.type.dtype = to;
  expr.args = {value.expr};
  result = build_.typed(std::move(expr));
  if (is_int(to) && widens_losslessly(value.type.dtype, to)) {
    result.facts = value.facts;
    result.facts.limit = all_.facts.index_limit(value);
  }
  return result;
}

Value Conversions::arithmetic(const Value& value) {
  const Value made = unmet(value);
  return made.is_error() ? made : coerce(made, arithmetic_type(made.type.dtype));
}

Value Conversions::as_float(const Value& value, std::string_view op) {
  if (value.is_error()) return value;
  const auto own = types_.own_dtype(value);
  if (!own) {
    const bool is_number = value.is_typed() || value.is_host() || value.kind == ValueKind::Table;
    if (is_number) return coerce(value, kF32);
    return mistake<DiagKind::CannotApply>(value.span, op, text_.describe(value));
  }
  if (is_float(*own)) return coerce(value, arithmetic_type(*own));
  if (!is_bool(*own) && widens_losslessly(*own, kF32)) return coerce(value, kF32);
  return error_value(reporter_.report<DiagKind::CannotApply>(value.span, op, text_.describe(value))
                         .note("convert it first: `as f32`"));
}

Value Conversions::unmet(const Value& value) {
  return types_.has_fraction(value) ? coerce(value, kF32) : materialize(value);
}

std::vector<Value> Conversions::unmet_together(std::vector<Value> values) {
  const bool meets_type =
      std::ranges::any_of(values, [&](const Value& v) { return types_.own_dtype(v).has_value(); });
  const bool has_any =
      std::ranges::any_of(values, [&](const Value& v) { return types_.has_fraction(v); });
  if (meets_type || !has_any) return values;
  for (Value& value : values) value = coerce(value, kF32);
  return values;
}

Value Conversions::bool_value(const Value& value, std::string_view what) {
  if (value.is_error()) return value;
  if (types_.own_dtype(value) != kBool)
    return mistake<DiagKind::BadType>(value.span, std::string(what), text_.describe(value));
  return coerce(value, kBool);
}

Value Conversions::one_bool(const Value& chosen_by) {
  Value value = bool_value(chosen_by, "a bool as condition");
  if (value.is_error() || value.type.rank == 0) return value;
  reporter_.report<DiagKind::BadType>(value.span, "one bool as condition", text_.describe(value))
      .note("`any` and `all` make one bool of many; `select(c, a, b)` chooses element by element");
  return error_value(value.span);
}

Value Conversions::fit_to(const Value& value, const Type& type, std::string_view name, Span span) {
  if (value.is_error()) return value;
  const bool is_value = value.is_host() || value.is_typed() || value.kind == ValueKind::Table;
  Value made = is_value && types_.can_coerce(value, type.dtype) ? coerce(value, type.dtype)
                                                                : error_value(value.span);
  const bool fills = made.is_typed() && made.type.rank == 0 && type.rank > 0;
  if (fills) return build_.builtin(BuiltinId::fill, type, {made.expr}, span);
  if (made.is_typed() && sizes_.same_shape(made.type, type)) return made;
  const bool is_row = made.is_typed() && made.type.rank == 1 && type.rank == 2 &&
                      all_.operators.is_row_of(made.type, type);
  if (is_row)
    return build_.builtin(BuiltinId::fill, type, {all_.operators.as_row(made, type).expr}, span);
  if (is_value && types_.can_coerce(value, type.dtype) && made.is_error()) return made;
  auto& diag = reporter_.report<DiagKind::CannotAssignType>(
      value.span, text_.describe(value), std::string(name), sizes_.type_text(type));
  text_.note_sizes(diag, {&value});
  const bool needs_as = value.is_typed() && !types_.can_coerce(value, type.dtype) &&
                        (value.type.rank == 0 || sizes_.same_shape(value.type, type));
  if (needs_as) diag.note("convert it: `as " + dtype_name(type.dtype) + "`");
  return error_value(value.span);
}

}  // namespace cinch::sema
