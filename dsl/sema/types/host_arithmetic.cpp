// Scalar operators on host expressions and on tables of constants.
#include "dsl/sema/types/conversions.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/mapped.h"
#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch::sema {

using dsl::DiagKind;

// The host has `%` of integers alone.
static bool is_integer_only(ScalarOp op) {
  const ScalarOperands operands = scalar_op_info(op).operands;
  return op == ScalarOp::mod || operands == ScalarOperands::Int || operands == ScalarOperands::Bits;
}

// Converts the operands to one host type. Returns an error value if the operator has none.
Value Numbers::host_unify(ScalarOp op, std::vector<HostExprId>& args, Span span) {
  bool has_float = false, has_f32 = false, has_size = false, all_bool = true, all_const = true;
  for (HostExprId arg : args) {
    const HostType type = pool().type(arg);
    const bool is_const = pool().is_const(arg);
    has_float |= type == HostType::F32 || type == HostType::F64;
    has_f32 |= type == HostType::F32;
    has_size |= type == HostType::Int && !is_const;
    all_bool &= type == HostType::Bool;
    all_const &= is_const;
  }
  if (all_bool) return host_value(args.front(), span);
  const bool make_ints = bounds(op) && has_size;
  const bool make_floats =
      !make_ints && (has_float || scalar_op_info(op).operands == ScalarOperands::Real ||
                     (mode_.in_claim && op == ScalarOp::div));
  // All floats in a size are f64. A number in a body is computed in the type of its elements.
  const bool narrow = !mode_.in_host && (has_f32 || !all_const);
  for (HostExprId& arg : args) {
    if (!make_floats) {
      if (has_float && !make_ints) return error_value(span);
      arg = pool().cast(arg, HostType::Int);
    } else {
      arg = pool().cast(arg, narrow ? HostType::F32 : HostType::F64);
    }
  }
  return host_value(args.front(), span);
}

Value Numbers::host_scalar_op(ScalarOp op, std::span<const Value> values, Span span) {
  std::vector<HostExprId> args;
  bool all_const = true;
  for (const Value& value : values) {
    if (value.is_big) return mistake<DiagKind::ConstantOverflow>(value.span);
    all_const &= pool().is_const(value.host);
    args.push_back(value.host);
  }
  if (op == ScalarOp::shl && !mode_.in_host) {
    if (const auto big = big_shift(args))
      return {.host = *big, .span = span, .kind = ValueKind::Host, .is_big = true};
  }
  const HostExprId result = host_op(op, std::move(args), span);
  if (!result) return error_value(span);
  if (all_const && !pool().is_const(result)) return mistake<DiagKind::ConstantOverflow>(span);
  return host_value(result, span);
}

// A constant that is shifted to 2^63 or more, as the bits of a u64.
std::optional<HostExprId> Numbers::big_shift(std::span<const HostExprId> args) {
  for (HostExprId arg : args) {
    if (!pool().is_const(arg) || pool().type(arg) != HostType::Int) return std::nullopt;
  }
  const std::int64_t number = pool().const_value(args[0]).as_int();
  const std::int64_t by = pool().const_value(args[1]).as_int();
  if (number <= 0 || by < 0 || std::countl_zero(static_cast<std::uint64_t>(number)) != by) {
    return std::nullopt;
  }
  return pool().const_int(static_cast<std::int64_t>(static_cast<std::uint64_t>(number) << by));
}

HostExprId Numbers::host_op(ScalarOp op, std::vector<HostExprId> args, Span span) {
  const bool all_const =
      std::all_of(args.begin(), args.end(), [&](HostExprId arg) { return pool().is_const(arg); });
  if (op == ScalarOp::select) {
    if (pool().type(args[0]) != HostType::Bool) return {};
    std::vector<HostExprId> sides{args[1], args[2]};
    if (host_unify(ScalarOp::add, sides, span).is_error()) return {};
    return pool().select(args[0], sides[0], sides[1]);
  }
  if (op == ScalarOp::bit_not && pool().type(args[0]) == HostType::Bool) {
    return pool().make(HostOp::Not, args[0]);
  }
  if (host_unify(op, args, span).is_error()) return {};
  // These combine two bools without a conversion.
  const bool is_logical = op == ScalarOp::bit_and || op == ScalarOp::bit_or ||
                          op == ScalarOp::bit_xor || op == ScalarOp::eq || op == ScalarOp::ne;
  if (pool().type(args[0]) == HostType::Bool && !is_logical) {
    if (scalar_op_info(op).operands == ScalarOperands::Real) return {};
    for (HostExprId& arg : args) arg = pool().cast(arg, HostType::Int);
  }
  const HostType type = pool().type(args[0]);
  if (is_integer_only(op) && type != HostType::Int && type != HostType::Bool) return {};
  const auto one_like = [&](double v) {
    if (type == HostType::Int) return pool().const_int(static_cast<std::int64_t>(v));
    return type == HostType::F32 ? pool().const_f32(static_cast<float>(v)) : pool().const_f64(v);
  };
  HostExprId result;
  if (rounds(op) && type == HostType::Int) {
    result = args[0];
  } else if (op == ScalarOp::bit_not) {
    result = pool().sub(pool().const_int(-1), args[0]);
  } else if (op == ScalarOp::sign) {
    const HostExprId zero = one_like(0);
    result =
        pool().select(pool().make(HostOp::Gt, args[0], zero), one_like(1),
                      pool().select(pool().make(HostOp::Lt, args[0], zero), one_like(-1), zero));
  } else if (op == ScalarOp::rsqrt) {
    result = pool().div(one_like(1), pool().make(HostOp::Sqrt, args[0]));
  } else if (op == ScalarOp::divide_or_zero) {
    const HostExprId is_zero = pool().make(HostOp::Eq, args[1], one_like(0));
    result = pool().select(is_zero, one_like(0), pool().div(args[0], args[1]));
  } else if (op == ScalarOp::isnan) {
    result = pool().make(HostOp::Ne, args[0], args[0]);
  } else if (op == ScalarOp::fma && all_const) {
    result = pool().const_f64(std::fma(pool().const_value(args[0]).as_f64(),
                                       pool().const_value(args[1]).as_f64(),
                                       pool().const_value(args[2]).as_f64()));
  } else {
    const std::optional<HostOp> made = host_op_of(op, type);
    if (!made) return {};
    result = pool().make(*made, args[0], args.size() > 1 ? args[1] : HostExprId(),
                         args.size() > 2 ? args[2] : HostExprId());
  }
  return result;
}

Value Numbers::declared_scalar_op(ScalarOp op, const std::vector<Value>& args, Span span,
                                  std::string_view name) {
  const auto type = all_.operators.operand_type(op, args, span, name);
  if (!type) return error_value(span);
  std::vector<HostExprId> numbers;
  bool stays = is_int(*type);
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool is_choice = op == ScalarOp::select && i == 0;
    if (!is_choice) stays &= pool().type(args[i].host) == HostType::Int && !args[i].is_big;
    numbers.push_back(args[i].host);
  }
  if (stays && (op == ScalarOp::shl || op == ScalarOp::shr)) {
    numbers[1] = pool().make(HostOp::BitAnd, numbers[1], pool().const_int(type->bits - 1));
  }
  const HostExprId result = stays ? host_op(op, numbers, span) : HostExprId();
  const bool is_test = result && pool().type(result) == HostType::Bool;
  // Constants that would overflow are not folded.
  const bool is_folded =
      result && (pool().is_const(result) ||
                 !std::all_of(numbers.begin(), numbers.end(),
                              [&](HostExprId number) { return pool().is_const(number); }));
  const bool is_number = is_folded && pool().type(result) == HostType::Int;
  if (is_test) return host_value(result, span);
  if (is_number && types_.is_known_to_fit(result, *type)) {
    Value value = host_value(result, span);
    value.declared = type;
    return value;
  }
  return all_.operators.typed_scalar_op(op, args, span, name);
}

namespace {

// The most elements of a table made of a row and a column. The device computes larger ones.
constexpr std::size_t kMostRepeated = 4096;

// Rows and columns of a table. A vector has one row.
struct TableShape {
  std::size_t rows = 1, cols = 1;
  bool is_matrix = false;
};

TableShape shape_of(const Value& table) {
  if (table.table_cols == 0) return {1, table.table.size(), false};
  return {table.table.size() / table.table_cols, table.table_cols, true};
}

// Returns nothing if a dimension neither agrees nor is 1.
std::optional<TableShape> joined(const TableShape& a, const TableShape& b) {
  const auto fits = [](std::size_t x, std::size_t y) { return x == y || x == 1 || y == 1; };
  if (!fits(a.rows, b.rows) || !fits(a.cols, b.cols)) return std::nullopt;
  return TableShape{a.rows == 1 ? b.rows : a.rows, a.cols == 1 ? b.cols : a.cols,
                    a.is_matrix || b.is_matrix};
}

// The common shape of the tables among the operands, of which there is at least one. In a program
// that works by rows, a vector is not a row of a matrix.
std::optional<TableShape> joined_tables(std::span<const Value> args, bool is_by_rows) {
  std::optional<TableShape> shape;
  for (const Value& arg : args) {
    if (arg.kind != ValueKind::Table) continue;
    const TableShape own = shape_of(arg);
    if (shape && is_by_rows && shape->is_matrix != own.is_matrix) return std::nullopt;
    shape = shape ? joined(*shape, own) : own;
    if (!shape) return std::nullopt;
  }
  return shape;
}

// The operand's element for element `i` of the result.
Value element_at(const Value& arg, const TableShape& made, std::size_t i) {
  if (arg.kind != ValueKind::Table) return arg;
  const TableShape own = shape_of(arg);
  const std::size_t row = own.rows == 1 ? 0 : i / made.cols;
  const std::size_t col = own.cols == 1 ? 0 : i % made.cols;
  return table_element(arg, row * own.cols + col);
}

}  // namespace

// Repeats rows, columns and numbers. Operands that do not fit are left to the operator on the
// device, which reports them.
Value Numbers::as_table_op(ScalarOp op, std::span<const Value> args, Span span) {
  const auto shape = FOUND(joined_tables(args, is_by_rows()));
  const std::size_t size = shape.rows * shape.cols;
  const bool is_repeated = std::ranges::none_of(args, [&](const Value& arg) {
    return arg.kind == ValueKind::Table && arg.table.size() == size;
  });
  if (is_repeated && size > kMostRepeated) return error_value(span);
  Value result{.table_cols = shape.is_matrix ? static_cast<std::uint32_t>(shape.cols) : 0,
               .span = span,
               .kind = ValueKind::Table};
  for (std::size_t i = 0; i < size; ++i) {
    auto elements =
        mapped<Value>(args, [&](const Value& arg) { return element_at(arg, shape, i); });
    const Value element = FOUND(host_scalar_op(op, elements, span));
    add_element(result, element.host, element.is_big);
  }
  return result;
}

}  // namespace cinch::sema
