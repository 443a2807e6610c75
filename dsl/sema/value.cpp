// Properties of values, and constructors of errors, numbers and tables.
#include "dsl/sema/value.h"

#include <algorithm>
#include <type_traits>

namespace cinch::sema {

Value error_value(Span span) {
  return {.span = span};
}

Value host_value(HostExprId id, Span span) {
  return {.host = id, .span = span, .kind = ValueKind::Host};
}

bool fits(std::int64_t number, DType type) {
  if (is_unsigned_int(type)) {
    return number >= 0 && (type.bits >= 63 || static_cast<std::uint64_t>(number) <= max_int(type));
  }
  return number >= min_int(type) && number <= static_cast<std::int64_t>(max_int(type));
}

bool holds_big(const Value& value) {
  return value.is_big || std::find(value.big_elements.begin(), value.big_elements.end(), true) !=
                             value.big_elements.end();
}

bool has_quotient(const Value& value) {
  return value.quotient != nullptr || (value.remake != nullptr && value.remake->has_quotient);
}

Value as_quotient(const Value& value) {
  if (value.quotient == nullptr) return value;
  Value quotient = *value.quotient;
  quotient.span = value.span;
  return quotient;
}

bool holds_shift(const Value& value) {
  return value.remake != nullptr && value.remake->holds_shift;
}

bool is_adaptable(const Value& value) {
  return value.is_typed() && !value.is_exact && value.remake != nullptr;
}

void add_element(Value& table, HostExprId number, bool is_big) {
  table.table.push_back(number);
  table.big_elements.push_back(is_big);
}

Value table_element(const Value& table, std::size_t i) {
  Value element = host_value(table.table[i], table.span);
  element.is_big = table.big_elements[i];
  element.is_hex = table.is_hex;
  if (table.quotient != nullptr) {
    element.quotient =
        std::make_shared<const Value>(host_value(table.quotient->table[i], table.span));
  }
  return element;
}

Value table_row(const Value& table, std::size_t row) {
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

}  // namespace cinch::sema
