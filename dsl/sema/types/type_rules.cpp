// Types of values, common types of two values, and silent conversions.
#include <algorithm>
#include <cmath>

#include "dsl/diag/foreign_words.h"
#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/types/conversions.h"

namespace cinch::sema {
bool bounds(ScalarOp op) {
  return op == ScalarOp::min || op == ScalarOp::max || op == ScalarOp::clamp;
}

bool is_for_reals(ScalarOp op) {
  return scalar_op_info(op).operands == ScalarOperands::Real || rounds(op);
}

bool TypeRules::is_known_to_fit(HostExprId number, DType type) const {
  if (pool().is_const(number)) return fits(pool().const_value(number).as_int(), type);
  // The host's own integers have 64 bits, so numbers near their end are left to the device.
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  const bool is_wide = type.bits > 62;
  const std::int64_t low = is_unsigned_int(type) ? 0 : is_wide ? -kFar : min_int(type);
  const HostExprId least = pool().const_int(low);
  const HostExprId most =
      pool().const_int(is_wide ? kFar : static_cast<std::int64_t>(max_int(type)));
  return prover_.proves_less_equal(least, number) && prover_.proves_less_equal(number, most);
}

std::optional<DType> TypeRules::own_dtype(const Value& value) const {
  if (value.is_host()) {
    const HostType type = pool().type(value.host);
    if (type == HostType::Bool) return kBool;
    if (type == HostType::F32) return kF32;
    return mode_.in_host ? std::nullopt : value.declared;
  }
  if (value.is_typed() && !value.is_exact) return value.type.dtype;
  if (is_bool_table(value)) return kBool;
  return std::nullopt;
}

bool TypeRules::is_bool_table(const Value& value) const {
  return value.kind == ValueKind::Table && !value.table.empty() &&
         std::ranges::all_of(value.table, [&](HostExprId element) {
           return pool().type(element) == HostType::Bool;
         });
}

bool TypeRules::is_real(const Value& value) const {
  const auto own = own_dtype(value);
  return own ? is_float(*own) : is_exact_float(value);
}

std::optional<DType> TypeRules::meet(const Value& a, const Value& b) const {
  const auto own_a = own_dtype(a), own_b = own_dtype(b);
  if (own_a && own_b) return common_arithmetic_type(*own_a, *own_b);
  if (!own_a && !own_b) {
    if (is_exact_float(a) || is_exact_float(b)) return kF32;
    const auto is_small = [](const Value& v) { return v.is_exact && v.type.dtype == kI32; };
    if (is_small(a) || is_small(b)) return kI32;
    return holds_big(a) || holds_big(b) ? kU64 : kI64;
  }
  const DType own = own_a ? *own_a : *own_b;
  if (is_exact_float(own_a ? b : a) && !is_float(own)) {
    return widens_losslessly(own, kF32) ? std::optional(kF32) : std::nullopt;
  }
  return arithmetic_type(own);
}

bool TypeRules::can_coerce(const Value& value, DType to) const {
  if (value.is_error()) return true;
  const bool is_arithmetic = is_int(to) && arithmetic_type(to) == to;
  if (is_adaptable(value) && is_arithmetic) return true;
  if (const auto own = own_dtype(value)) return widens_losslessly(*own, to);
  if (value.is_typed()) return !is_bool(to);
  if (value.kind != ValueKind::Table && !value.is_host()) return false;
  return !is_bool(to) && (is_float(to) || !is_exact_float(value));
}

Type TypeRules::value_type(const Value& value) const {
  if (value.is_typed()) return value.type;
  if (value.kind != ValueKind::Table) return scalar_type(kF32);
  const auto size = static_cast<std::int64_t>(value.table.size());
  if (value.table_cols == 0) return vector_type(kF32, pool().const_int(size));
  return matrix_type(kF32, pool().const_int(size / value.table_cols),
                     pool().const_int(value.table_cols));
}

DType TypeRules::wide_type(const Value& value) const {
  const HostType type = pool().type(value.host);
  if (type == HostType::Int) return value.is_big ? kU64 : kI64;
  if (type == HostType::Bool) return kBool;
  return pool().is_const(value.host) ? kF64 : kF32;
}

DType TypeRules::type_of_numbers(const std::vector<Value>& numbers) const {
  const auto is = [&](const auto& test) {
    return std::any_of(numbers.begin(), numbers.end(), test);
  };
  if (is([&](const Value& v) { return is_real(v); })) return kF32;
  if (is([](const Value& v) { return v.is_exact && v.type.dtype == kI32; })) return kI32;
  return is([](const Value& v) { return holds_big(v); }) ? kU64 : kI64;
}

std::vector<HostExprId> TypeRules::constants_of(std::span<const Value> choices) const {
  std::vector<HostExprId> numbers;
  for (const Value& choice : choices) {
    const bool is_constant = choice.is_host() && pool().is_const(choice.host) &&
                             pool().type(choice.host) == HostType::Int && !choice.is_big;
    if (is_constant) numbers.push_back(choice.host);
    numbers.insert(numbers.end(), choice.chosen.begin(), choice.chosen.end());
  }
  return numbers;
}

bool TypeRules::is_small_number(const Value& value) const {
  if (value.is_typed() && value.is_exact) return value.type.dtype == kI32;
  const bool is_exact =
      value.is_host() && !value.declared && !value.is_big && pool().is_const(value.host);
  if (!is_exact || pool().type(value.host) != HostType::Int) return false;
  const std::int64_t number = pool().const_value(value.host).as_int();
  return number >= min_int(kI32) && number <= static_cast<std::int64_t>(max_int(kI32));
}

bool TypeRules::has_room(const Value& number, DType type) const {
  if (holds_big(number)) return false;
  const bool is_constant = number.is_host() && pool().is_const(number.host);
  return !is_constant || pool().type(number.host) != HostType::Int ||
         fits(pool().const_value(number.host).as_int(), type);
}

// Is this a constant with a fraction, or made of one by arithmetic or a choice?
bool TypeRules::is_fraction(HostExprId number) const {
  const HostType type = pool().type(number);
  if (type != HostType::F32 && type != HostType::F64) return false;
  const HostExprNode node = pool().node(number);
  switch (node.op) {
    case HostOp::Const: {
      const double real = pool().const_value(number).to_double();
      return std::isfinite(real) && real != std::trunc(real);
    }
    case HostOp::Add:
    case HostOp::Sub:
    case HostOp::Mul:
    case HostOp::Div:
    case HostOp::Min:
    case HostOp::Max:
    case HostOp::Clamp:
    case HostOp::Neg:
    case HostOp::Cast:
    case HostOp::Select: {
      if (const auto known = fractions_.find(number); known != fractions_.end()) {
        return known->second;
      }
      const auto is_one = [&](HostExprId arg) { return arg && is_fraction(arg); };
      return fractions_[number] = std::ranges::any_of(node.args, is_one);
    }
    default:
      return false;
  }
}

bool TypeRules::has_fraction(const Value& value) const {
  if (value.is_typed()) {
    return value.is_exact && value.remake != nullptr && value.remake->has_fraction;
  }
  if (value.quotient == nullptr) return false;
  const Value& quotient = *value.quotient;
  const auto is_one = [&](HostExprId number) { return is_fraction(number); };
  return quotient.is_host() ? is_one(quotient.host) : std::ranges::any_of(quotient.table, is_one);
}

bool TypeRules::may_be_negative(const Value& value) const {
  const bool is_size = value.is_host() && !value.declared && value.remake == nullptr &&
                       !pool().is_const(value.host) && pool().type(value.host) == HostType::Int;
  return is_size && !prover_.proves_nonnegative(value.host);
}

bool TypeRules::stays_adaptable(ScalarOp op, std::span<const Value> args) const {
  const auto is_number = [&](const Value& arg) {
    const bool has_no_type = !own_dtype(arg) && !holds_big(arg);
    return (has_no_type && !is_real(arg)) || is_adaptable(arg);
  };
  if (op == ScalarOp::shl || op == ScalarOp::shr) {
    return is_number(args[0]) && (is_adaptable(args[0]) || own_dtype(args[1]).has_value());
  }
  const bool is_of_integers = scalar_op_info(op).result == ScalarResult::Same && !is_for_reals(op);
  const std::span<const Value> joined = args.subspan(op == ScalarOp::select ? 1 : 0);
  return is_of_integers && std::ranges::all_of(joined, is_number) &&
         std::ranges::any_of(joined, [&](const Value& arg) { return is_adaptable(arg); });
}

bool TypeRules::is_exact_float(const Value& value) const {
  if (value.is_host()) return pool().type(value.host) == HostType::F64;
  return std::ranges::any_of(
      value.table, [&](HostExprId element) { return pool().type(element) == HostType::F64; });
}

// Reads scalar types and array types.

using dsl::DiagKind;

std::optional<DType> Conversions::dtype_of(ast::TypeId id) {
  const ast::Type& type = tree()[id];
  const auto* scalar = std::get_if<ast::ScalarType>(&type.node);
  if (scalar == nullptr) {
    const bool has_words = std::holds_alternative<ast::EnumType>(type.node);
    return mistake<DiagKind::BadType>(
        type.span, "a scalar type",
        has_words ? "words, which parameters of compressors take" : "another type");
  }
  const std::string& name = scalar->name.text;
  if (scalar->width.has_value()) {
    const auto bits = FOUND(all_.numbers.constant_int(scalar->width));
    const auto made = name == "int" ? make_int(bits) : make_uint(bits);
    if (!made) reporter_.report<DiagKind::BadWidth>(tree()[scalar->width].span, name, bits);
    return made;
  }
  if (mode_.element && name == "T") return mode_.element;
  const auto found = parse_dtype(name);
  if (!found) {
    static const std::vector<std::string_view> kNames = {"bool", "f16", "bf16",   "f32",    "f64",
                                                         "u8",   "u16", "f8e4m3", "f8e5m2", "u32",
                                                         "u64",  "i8",  "i16",    "i32",    "i64"};
    auto& diag = reporter_.report<DiagKind::UnknownType>(type.span, name);
    dsl::explain_word(diag, dsl::ForeignPlace::Type, name, type.span,
                      dsl::nearest_name(name, kNames));
  }
  return found;
}

std::optional<Type> Conversions::type_of(ast::TypeId id) {
  const ast::Type& node = tree()[id];
  if (std::holds_alternative<ast::CompressorType>(node.node))
    return mistake<DiagKind::BadType>(node.span, "a scalar or an array", "`compressor`");
  if (std::holds_alternative<ast::TupleType>(node.node))
    return mistake<DiagKind::BadType>(node.span, "a scalar or an array", "several types");
  const auto* array = std::get_if<ast::ArrayType>(&node.node);
  if (array != nullptr && array->is_any()) {
    reporter_.report<DiagKind::BadType>(node.span, "sizes", "`..`")
        .note("`..` stands for any sizes in the signature of a fn");
    return std::nullopt;
  }
  if (array == nullptr) {
    const auto dtype = dtype_of(id);
    return dtype ? std::optional(scalar_type(*dtype)) : std::nullopt;
  }
  const auto element = dtype_of(array->element);
  Type type = scalar_type(element.value_or(kF32));
  bool is_good = element.has_value();
  const auto dims = tree().list(array->dims);
  if (dims.size() > 2)
    return mistake<DiagKind::BadType>(node.span, "one or two sizes", std::to_string(dims.size()));
  for (ast::ExprId dim : dims) {
    const auto size = all_.numbers.host_size(dim, "a size of a type");
    if (size) type.dims[type.rank++] = *size;
    is_good &= size.has_value();
  }
  return is_good ? std::optional(type) : std::nullopt;
}

}  // namespace cinch::sema
