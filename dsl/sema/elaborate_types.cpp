// Types as written, and conversions: exact numbers take the type they meet, other values widen
// silently where nothing can change, all else needs `as`.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

std::uint64_t f64_bits(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool is_wide_float(DType type) {
  return type == kF32 || type == kF64;
}

}  // namespace

bool Elaborator::fits(std::int64_t value, DType type) {
  if (is_unsigned_int(type)) {
    return value >= 0 && (type.bits >= 63 || static_cast<std::uint64_t>(value) <= max_int(type));
  }
  return value >= min_int(type) && value <= static_cast<std::int64_t>(max_int(type));
}

bool Elaborator::is_known_to_fit(HostExprId number, DType type) {
  if (pool().is_const(number)) return fits(pool().const_value(number).as_int(), type);
  // The host's integers have 64 bits themselves: what may come near their end is left to the
  // device.
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  const bool is_wide = type.bits > 62;
  const std::int64_t low = is_unsigned_int(type) ? 0 : is_wide ? -kFar : min_int(type);
  const HostExprId least = pool().const_int(low);
  const HostExprId most =
      pool().const_int(is_wide ? kFar : static_cast<std::int64_t>(max_int(type)));
  return sizes_.proves_less_equal(least, number) && sizes_.proves_less_equal(number, most);
}

std::optional<DType> Elaborator::dtype_of(ast::TypeId id) {
  const ast::Type& type = tree()[id];
  const auto* scalar = std::get_if<ast::ScalarType>(&type.node);
  if (scalar == nullptr) {
    const bool has_words = std::holds_alternative<ast::EnumType>(type.node);
    reporter_.report<DiagKind::BadType>(
        type.span, "a scalar type",
        has_words ? "words, which parameters of compressors take" : "another type");
    return std::nullopt;
  }
  const std::string& name = scalar->name.text;
  if (scalar->width.has_value()) {
    const auto bits = constant_int(scalar->width);
    if (!bits) return std::nullopt;
    const auto made = name == "int" ? make_int(*bits) : make_uint(*bits);
    if (!made) reporter_.report<DiagKind::BadWidth>(tree()[scalar->width].span, name, *bits);
    return made;
  }
  const auto found = parse_dtype(name);
  if (!found) {
    static const std::vector<std::string_view> kNames = {"bool", "f16", "bf16",   "f32",    "f64",
                                                         "u8",   "u16", "f8e4m3", "f8e5m2", "u32",
                                                         "u64",  "i8",  "i16",    "i32",    "i64"};
    reporter_.report<DiagKind::UnknownType>(type.span, name)
        .suggest(type.span, std::string(dsl::nearest_name(name, kNames)));
  }
  return found;
}

std::optional<Type> Elaborator::type_of(ast::TypeId id) {
  const ast::Type& node = tree()[id];
  if (std::holds_alternative<ast::CompressorType>(node.node)) {
    reporter_.report<DiagKind::BadType>(node.span, "a scalar or an array", "`compressor`");
    return std::nullopt;
  }
  if (std::holds_alternative<ast::TupleType>(node.node)) {
    reporter_.report<DiagKind::BadType>(node.span, "a scalar or an array", "several types");
    return std::nullopt;
  }
  const auto* array = std::get_if<ast::ArrayType>(&node.node);
  if (array != nullptr && array->is_any()) {
    reporter_.report<DiagKind::BadType>(node.span, "sizes", "`..`")
        .note("`..` stands for any sizes in the signature of a fn");
    return std::nullopt;
  }
  if (array == nullptr) {
    const auto dtype = dtype_of(id);
    return dtype ? std::optional(scalar(*dtype)) : std::nullopt;
  }
  const auto element = dtype_of(array->element);
  Type type = scalar(element.value_or(kF32));
  bool is_good = element.has_value();
  const auto dims = tree().list(array->dims);
  if (dims.size() > 2) {
    reporter_.report<DiagKind::BadType>(node.span, "one or two sizes", std::to_string(dims.size()));
    return std::nullopt;
  }
  for (ast::ExprId dim : dims) {
    const auto size = host_size(dim, "a size of a type");
    if (size) type.dims[type.rank++] = *size;
    is_good &= size.has_value();
  }
  return is_good ? std::optional(type) : std::nullopt;
}

bool Elaborator::is_one(HostExprId size) {
  return sizes_.constant(size) == 1;
}

HostExprId Elaborator::one_form(HostExprId size) {
  return size_forms_.try_emplace(sizes_.canonical(size), size).first->second;
}

Type Elaborator::in_one_form(Type type) {
  for (int i = 0; i < type.rank; ++i) type.dims[i] = one_form(type.dims[i]);
  return type;
}

bool Elaborator::same_shape(const Type& a, const Type& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (!sizes_.proves_equal(a.dims[i], b.dims[i])) return false;
  }
  return true;
}

HostExprId Elaborator::num_elems(const Type& type) {
  if (type.rank == 0) return pool().const_int(1);
  return type.rank == 1 ? type.dims[0] : pool().mul(type.dims[0], type.dims[1]);
}

Value Elaborator::literal(HostExprId constant, DType to, Span span) {
  const HostValue value = pool().const_value(constant);
  Expr expr{ExprKind::Literal, scalar(to), span};
  if (is_float(to)) {
    // Rounded once: f64 does not hold every integer that f32 rounds.
    const float single = value.type == HostType::Int ? static_cast<float>(value.as_int())
                                                     : static_cast<float>(value.to_double());
    expr.bits = f64_bits(to == kF64 ? value.to_double() : static_cast<double>(single));
  } else {
    expr.bits = value.type == HostType::Bool || value.type == HostType::Int
                    ? value.bits
                    : static_cast<std::uint64_t>(static_cast<std::int64_t>(value.to_double()));
  }
  return typed(std::move(expr));
}

Type Elaborator::value_type(const Value& value) {
  if (value.is_typed()) return value.type;
  if (value.kind != ValueKind::Table) return scalar(kF32);
  const auto size = static_cast<std::int64_t>(value.table.size());
  if (value.table_cols == 0) return vector(kF32, pool().const_int(size));
  return matrix(kF32, pool().const_int(size / value.table_cols),
                pool().const_int(value.table_cols));
}

bool Elaborator::is_bool_table(const Value& value) const {
  const HostExprPool& pool = out_.info.exprs;
  return value.kind == ValueKind::Table && !value.table.empty() &&
         std::ranges::all_of(
             value.table, [&](HostExprId element) { return pool.type(element) == HostType::Bool; });
}

std::optional<DType> Elaborator::own_dtype(const Value& value) const {
  if (value.is_host()) {
    const HostType type = out_.info.exprs.type(value.host);
    if (type == HostType::Bool) return kBool;
    if (type == HostType::F32) return kF32;
    return in_host_ ? std::nullopt : value.declared;
  }
  if (value.is_typed() && !value.is_exact) return value.type.dtype;
  if (is_bool_table(value)) return kBool;
  return std::nullopt;
}

namespace {

// True for numbers with a point, f32 unless they meet another type.
bool is_exact_float(const HostExprPool& pool, const Value& value) {
  if (value.is_host()) return pool.type(value.host) == HostType::F64;
  for (HostExprId element : value.table) {
    if (pool.type(element) == HostType::F64) return true;
  }
  return false;
}

}  // namespace

bool Elaborator::is_real(const Value& value) {
  const auto own = own_dtype(value);
  return own ? is_float(*own) : is_exact_float(pool(), value);
}

bool Elaborator::holds_big(const Value& value) {
  return value.is_big || std::find(value.big_elements.begin(), value.big_elements.end(), true) !=
                             value.big_elements.end();
}

void Elaborator::add_element(Value& table, HostExprId number, bool is_big) const {
  table.table.push_back(number);
  table.big_elements.push_back(is_big);
}

Value Elaborator::table_element(const Value& table, std::size_t i) const {
  Value element = host(table.table[i], table.span);
  element.is_big = table.big_elements[i];
  element.is_hex = table.is_hex;
  if (table.quotient != nullptr) {
    element.quotient = std::make_shared<const Value>(host(table.quotient->table[i], table.span));
  }
  return element;
}

Value Elaborator::table_row(const Value& table, std::size_t row) {
  Value result = table;
  const std::size_t cols = table.table_cols, first = row * cols;
  const auto cut = [&](const auto& all) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return std::decay_t<decltype(all)>(begin, begin + static_cast<std::ptrdiff_t>(cols));
  };
  result.table_cols = 0;
  result.table = cut(table.table);
  result.big_elements = cut(table.big_elements);
  if (table.quotient != nullptr) {
    result.quotient = std::make_shared<const Value>(table_row(*table.quotient, row));
  }
  return result;
}

std::optional<DType> Elaborator::meet(const Value& a, const Value& b) {
  const auto own_a = own_dtype(a), own_b = own_dtype(b);
  if (own_a && own_b) return common_arithmetic_type(*own_a, *own_b);
  if (!own_a && !own_b) {
    if (is_exact_float(pool(), a) || is_exact_float(pool(), b)) return kF32;
    const auto is_small = [](const Value& v) { return v.is_exact && v.type.dtype == kI32; };
    if (is_small(a) || is_small(b)) return kI32;
    return holds_big(a) || holds_big(b) ? kU64 : kI64;
  }
  const DType own = own_a ? *own_a : *own_b;
  if (is_exact_float(pool(), own_a ? b : a) && !is_float(own)) {
    return widens_losslessly(own, kF32) ? std::optional(kF32) : std::nullopt;
  }
  return arithmetic_type(own);
}

Value Elaborator::materialize(const Value& value) {
  if (value.kind == ValueKind::Table) {
    if (is_exact_float(pool(), value)) return coerce(value, kF32);
    if (holds_big(value)) return coerce(value, kU64);
    if (is_bool_table(value)) return coerce(value, kBool);
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

bool Elaborator::can_coerce(const Value& value, DType to) {
  if (value.is_error()) return true;
  const bool is_arithmetic = is_int(to) && arithmetic_type(to) == to;
  if (is_adaptable(value) && is_arithmetic) return true;
  if (const auto own = own_dtype(value)) return widens_losslessly(*own, to);
  if (value.is_typed()) return !is_bool(to);
  if (value.kind != ValueKind::Table && !value.is_host()) return false;
  return !is_bool(to) && (is_float(to) || !is_exact_float(pool(), value));
}

// A literal of 2^63 or more as the number that it is, which for f32 and f64 is a float.
Value Elaborator::big_as_float(const Value& value, DType to) {
  const auto number = static_cast<std::uint64_t>(pool().const_value(value.host).as_int());
  const double rounded =
      to == kF32 ? static_cast<double>(static_cast<float>(number)) : static_cast<double>(number);
  return host(pool().const_f64(rounded), value.span);
}

// A conversion would change what does not fit; written out it may.
bool Elaborator::is_every_choice_in(const Value& value, DType to) {
  if (!is_int(to)) return true;
  for (const HostExprId number : value.chosen) {
    if (fits(pool().const_value(number).as_int(), to)) continue;
    reporter_.report<DiagKind::ConstantOutOfRange>(value.span, pool().print(number),
                                                   dtype_name(to));
    return false;
  }
  return true;
}

// The constants among exact numbers that a choice chooses from, those of inner choices, too.
std::vector<HostExprId> Elaborator::constants_of(std::span<const Value> choices) {
  std::vector<HostExprId> numbers;
  for (const Value& choice : choices) {
    const bool is_constant = choice.is_host() && pool().is_const(choice.host) &&
                             pool().type(choice.host) == HostType::Int && !choice.is_big;
    if (is_constant) numbers.push_back(choice.host);
    numbers.insert(numbers.end(), choice.chosen.begin(), choice.chosen.end());
  }
  return numbers;
}

Value Elaborator::coerce(const Value& value, DType to) {
  if (value.is_error()) return value;
  if (value.is_big && is_wide_float(to)) return coerce(big_as_float(value, to), to);
  if (is_float(to) && value.quotient != nullptr) return coerce(as_quotient(value), to);
  if (!can_coerce(value, to)) {
    const bool is_value = value.is_host() || value.is_typed() || value.kind == ValueKind::Table;
    if (is_value) {
      reporter_.report<DiagKind::CannotConvert>(value.span, describe(value), dtype_name(to));
    } else {
      reporter_.report<DiagKind::Mismatch>(value.span, dtype_name(to), describe(value));
    }
    return error(value.span);
  }
  if (value.kind == ValueKind::Table) {
    Expr table{ExprKind::Table, value_type(value), value.span};
    table.type.dtype = to;
    for (std::size_t i = 0; i < value.table.size(); ++i) {
      const Value made = coerce(table_element(value, i), to);
      if (made.is_error()) return made;
      table.args.push_back(made.expr);
    }
    return typed(std::move(table));
  }
  if (value.is_typed()) {
    if (value.type.dtype == to) {
      Value same = value;
      same.is_exact = false;
      same.remake.reset();
      return same;
    }
    if (value.is_exact && !is_every_choice_in(value, to)) return error(value.span);
    const bool is_anew = value.remake != nullptr && (value.is_exact || is_int(to));
    if (is_anew) return value.remake->in_type(to);
    Value result = convert(value, to, value.span);
    if (is_int(to)) result.facts = value.facts;  // no float is an index
    return result;
  }
  const HostType type = pool().type(value.host);
  if (value.is_big && !is_float(to) && to != kU64) {
    reporter_.report<DiagKind::ConstantOutOfRange>(value.span, number_text(value), dtype_name(to));
    return error(value.span);
  }
  // Rounded once: an f32 would be rounded again.
  if (is_narrow_float(to)) return convert(coerce(value, wide_type(value)), to, value.span);
  if (pool().is_const(value.host)) {
    const bool is_number = type == HostType::Int && is_int(to) && !value.is_big;
    if (is_number && !fits(pool().const_value(value.host).as_int(), to)) {
      reporter_.report<DiagKind::ConstantOutOfRange>(value.span, pool().print(value.host),
                                                     dtype_name(to));
      return error(value.span);
    }
    return literal(value.host, to, value.span);
  }
  return size_in_type(value, to);
}

// What the host computes before launch.
Value Elaborator::size_in_type(const Value& value, DType to) {
  const HostType type = pool().type(value.host);
  if (is_int(to) && value.remake != nullptr) return value.remake->in_type(to);
  if (type == HostType::Int && is_unsigned_int(to) && is_never_positive(value.host)) {
    reporter_.report<DiagKind::ConstantOutOfRange>(value.span, size_text(value.host),
                                                   dtype_name(to));
    return error(value.span);
  }
  Expr size{ExprKind::HostSize, scalar(to), value.span};
  size.size = value.host;
  if (is_float(to)) size.size = pool().cast(value.host, to == kF64 ? HostType::F64 : HostType::F32);
  if (type == HostType::Bool && !is_bool(to) && !is_float(to)) size.size = to_int(value.host);
  return typed(std::move(size));
}

// The type that holds a number of the host as it is; what is computed in a body is no more than
// f32.
DType Elaborator::wide_type(const Value& value) {
  const HostType type = pool().type(value.host);
  if (type == HostType::Int) return value.is_big ? kU64 : kI64;
  if (type == HostType::Bool) return kBool;
  return pool().is_const(value.host) ? kF64 : kF32;
}

Value Elaborator::convert(const Value& value, DType to, Span span) {
  if (value.is_error()) return error(span);
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
  if (is_int(to) && !in_host_ && is_other && holds_shift(value)) {
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
      if (in_host_ && is_wide_float(to)) {
        const HostExprId number = to == kF32 ? pool().cast(value.host, HostType::F32) : value.host;
        return host(pool().cast(number, HostType::F64), span);
      }
      return coerce(same, to);
    }
    if (in_host_ && is_int(to)) return host(to_int(value.host), span);
    if (is_const && type == HostType::Int && !value.is_big && is_int(to) &&
        fits(pool().const_value(value.host).as_int(), to)) {
      return literal(value.host, to, span);
    }
    return convert(coerce(value, wide_type(value)), to, span);
  }
  if (!value.is_typed()) {
    reporter_.report<DiagKind::Mismatch>(value.span, "a value", describe(value));
    return error(span);
  }
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
  result = typed(std::move(expr));
  if (is_int(to) && widens_losslessly(value.type.dtype, to)) {
    result.facts = value.facts;
    result.facts.limit = index_limit(value);
  }
  return result;
}

Value Elaborator::arithmetic(const Value& value) {
  const Value made = unmet(value);
  return made.is_error() ? made : coerce(made, arithmetic_type(made.type.dtype));
}

Value Elaborator::as_float(const Value& value, std::string_view op) {
  if (value.is_error()) return value;
  const auto own = own_dtype(value);
  if (!own) {
    return value.is_typed() || value.is_host() || value.kind == ValueKind::Table
               ? coerce(value, kF32)
               : error(value.span);
  }
  if (is_float(*own)) return coerce(value, arithmetic_type(*own));
  if (!is_bool(*own) && widens_losslessly(*own, kF32)) return coerce(value, kF32);
  reporter_.report<DiagKind::CannotApply>(value.span, op, describe(value))
      .note("convert it first: `as f32`");
  return error(value.span);
}

}  // namespace cinch::sema
