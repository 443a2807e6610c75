// Rows and columns: `m[i, j]` as in numpy, and matrices of column numbers.
#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/expressions/expressions.h"

namespace cinch::sema {
using dsl::DiagKind;

namespace {

constexpr std::int64_t kNoPlace = UINT32_MAX;

}  // namespace

// A range selects whole rows or columns. Two arrays of numbers go together element by element:
// `m[i, j]` has `m[i[k], j[k]]` at `[k]`.
Value Expressions::at_places(const Value& base, const Place& rows, const Place& cols, Span span) {
  if (cols.is_whole()) return at_place(base, rows, span);
  if (rows.rank() == 0) return at_place(at_place(base, rows, span), cols, span);
  return all_.numbers.made_of_exact(base, span, [=, this](const Value& made) -> Value {
    if (!rows.bounds && !cols.bounds) return gather_pairs(made, rows, cols, span);
    if (!is_line(rows) || !is_line(cols)) return error_value(span);
    Value some = rows.is_whole() ? made : FOUND(at_place(made, rows, span));
    const bool were_unique = some.facts.unique_in_rows;
    some = FOUND(at_place(all_.operators.transposed(some, span), cols, span));
    if (some.type.rank == 2) some = all_.operators.transposed(some, span);
    some.facts.unique_in_rows = were_unique && cols.bounds.has_value();
    return some;
  });
}

// Beside a range an index is a number or a vector: a matrix of them would give three dimensions.
bool Expressions::is_line(const Place& place) {
  if (place.rank() < 2) return true;
  reporter_.report<DiagKind::BadIndex>(place.span, text_.describe(place.at))
      .note("beside a range, an index is a number or a vector");
  return false;
}

Value Expressions::gather_pairs(const Value& base, const Place& rows, const Place& cols,
                                Span span) {
  const Value at = FOUND(number_of_pair(rows.at, cols.at, base.type, span));
  const Value all = all_.operators.reshaped(
      base, vector_type(base.type.dtype, sizes_.num_elems(base.type)), span);
  return gather(all, at, span);
}

// One number of a pair of indices: its number as u32, and whether it exists, unless that is proved.
std::optional<std::pair<Value, std::optional<Value>>> Expressions::number_in(const Value& given,
                                                                             HostExprId size,
                                                                             Span span) {
  const Value index = FOUND(as_index(given));
  if (mode_.lambda_depth > 0 && index.type.rank > 0 &&
      all_.calls.check_lambda_array(index).is_error())
    return std::nullopt;
  const Value number = FOUND(conversions_.convert(index, kU32, span));
  const bool is_host = given.is_host() && pool().type(given.host) == HostType::Int &&
                       !pool().has_count(size) && !pool().has_count(given.host);
  if (is_host) check_host_index(given, size, "x", given.span);
  if (is_host || all_.facts.is_in_bounds(index, size)) return std::pair(number, std::nullopt);
  return std::pair(number, std::optional(is_column(index, number, size, span)));
}

// The number of element [i, j] in row-major order, for each pair of indices. Where an index is out
// of range it is the largest integer, which is not a valid place.
Value Expressions::number_of_pair(const Value& rows, const Value& cols, const Type& shape,
                                  Span span) {
  const auto row = FOUND(number_in(rows, shape.dims[0], span));
  const auto column = FOUND(number_in(cols, shape.dims[1], span));
  const bool is_proved = !row.second && !column.second;
  if (!holds_numbers(shape, is_proved, span)) return error_value(span);
  const Value width = conversions_.coerce(host_value(shape.dims[1], span), kU32);
  const Value begin = all_.operators.scalar_op(ScalarOp::mul, {row.first, width}, span, "[]");
  Value at = FOUND(all_.operators.scalar_op(ScalarOp::add, {begin, column.first}, span, "[]"));
  for (const auto& is_there : {row.second, column.second}) {
    if (!is_there) continue;
    const Value none = conversions_.coerce(host_value(pool().const_int(kNoPlace), span), kU32);
    at = FOUND(all_.operators.scalar_op(ScalarOp::select, {*is_there, at, none}, span, "[]"));
  }
  at.facts = {};
  at.facts.assumed = rows.facts.assumed | cols.facts.assumed;
  if (is_proved) at.facts.limit = sizes_.num_elems(shape);
  at.facts.unique = has_no_pair_twice(rows, cols, at.type);
  return at;
}

// Pairs differ if one of their two numbers does. A number that is repeated beside a vector does
// not.
bool Expressions::has_no_pair_twice(const Value& rows, const Value& cols, const Type& pairs) {
  if (pairs.rank != 1) return pairs.rank == 0;
  const auto differs = [&](const Value& index) {
    return index.is_typed() && index.type.rank == 1 && index.facts.unique &&
           prover_.proves_equal(index.type.dims[0], pairs.dims[0]);
  };
  return differs(rows) || differs(cols);
}

// Are the elements of a matrix numbered by 32 bits? One number less if the last one means "none".
bool Expressions::holds_numbers(const Type& shape, bool is_proved, Span span) {
  const HostExprId all = sizes_.num_elems(shape);
  const HostExprId most = pool().const_int(is_proved ? kNoPlace + 1 : kNoPlace);
  return build_.require_at_most(all, most,
                                sizes_.size_text(all) + " elements are numbered by 32 bits", span);
}

// Indices of what a store to `x[place]` changes: elements, or rows of a matrix.
std::optional<Target> Expressions::target_of(const Place& place, const Type& shape,
                                             std::string_view array, Span span) {
  const HostExprId size = shape.dims[0];
  const Value index =
      FOUND(place.bounds ? indices_of(*place.bounds, size, span) : as_index(place.at));
  if (index.type.rank > 1) return mistake<DiagKind::BadIndex>(place.span, text_.describe(place.at));
  Type stored = shape;
  stored.dims[0] = index.type.dims[0];
  if (index.type.rank == 0) {
    stored = shape.rank == 1 ? scalar_type(shape.dtype) : vector_type(shape.dtype, shape.dims[1]);
  }
  const bool is_host = place.at.is_host() && !pool().has_count(size);
  if (is_host) check_host_index(place.at, size, array, place.span);
  return Target{index, stored, is_host};
}

// Indices of what a store to `m[rows, cols]` changes, as numbers of its elements in row-major
// order, and the shape of what is stored there.
std::optional<Target> Expressions::target_of(const Place& rows, const Place& cols,
                                             const Type& shape, Span span) {
  const auto indices = [&](const Place& place, HostExprId size) {
    return place.bounds ? indices_of(*place.bounds, size, span) : place.at;
  };
  Value i = FOUND(indices(rows, shape.dims[0])), j = FOUND(indices(cols, shape.dims[1]));
  for (const Place* place : {&rows, &cols}) {
    if (place->rank() == 2)
      return mistake<DiagKind::BadIndex>(place->span, text_.describe(place->at));
  }
  const bool is_block = (rows.bounds || cols.bounds) && rows.rank() == 1 && cols.rank() == 1;
  const bool is_unique = i.facts.unique && j.facts.unique;
  if (is_block) {
    i = FOUND(as_index(i));
    const IndexFacts facts = i.facts;
    i = all_.operators.reshaped(i, matrix_type(i.type.dtype, i.type.dims[0], pool().const_int(1)),
                                span);
    i.facts = facts;
  }
  Value at = FOUND(number_of_pair(i, j, shape, span));
  Type stored = at.type;
  stored.dtype = shape.dtype;
  const IndexFacts facts = at.facts;
  if (is_block)
    at = all_.operators.reshaped(at, vector_type(kU32, sizes_.num_elems(at.type)), span);
  at.facts = facts;
  if (is_block) at.facts.unique = is_unique;
  return Target{at, stored};
}

Value Expressions::indices_of(const Bounds& bounds, HostExprId size, Span span) {
  const bool is_possible =
      bounds.size
          ? build_.require_nonnegative(bounds.size, "the length of a slice is not negative", span)
          : holds_bounds(bounds.begin, bounds.end, size, span);
  if (!is_possible) return error_value(span);
  const HostExprId length = bounds.size ? bounds.size : sizes_.length_of(bounds.begin, bounds.end);
  const Value numbers = build_.builtin(BuiltinId::iota, vector_type(kU32, length), {}, span,
                                       [&](Expr& e) { e.size = length; });
  const Value begin = bounds.size ? conversions_.convert(bounds.first, kU32, span)
                                  : conversions_.coerce(host_value(bounds.begin, span), kU32);
  Value index = FOUND(all_.operators.scalar_op(ScalarOp::add, {numbers, begin}, span, "+"));
  index.facts = {true, true, bounds.size ? HostExprId() : size};
  return index;
}

// Turns a row of column numbers for each row of a matrix with `cols` columns into places in the
// flat array: j * cols + i[j, k]. A number that may not be a column becomes the largest integer,
// which is not a valid place, so that it never means an element of another row.
Value Expressions::places_in_rows(const Value& index, HostExprId cols, Span span) {
  const HostExprId width = index.type.dims[1], count = sizes_.num_elems(index.type);
  const HostExprId places = pool().mul(index.type.dims[0], cols);
  const bool is_proved = all_.facts.is_in_bounds(index, cols);
  if (!holds_numbers(matrix_type(kU32, index.type.dims[0], cols), is_proved, span))
    return error_value(span);
  const Type flat = vector_type(kU32, count);
  const Value number =
      build_.builtin(BuiltinId::iota, flat, {}, span, [&](Expr& e) { e.size = count; });
  const Value row = all_.operators.scalar_op(
      ScalarOp::div, {number, conversions_.coerce(host_value(width, span), kU32)}, span, "/");
  const Value begin = all_.operators.scalar_op(
      ScalarOp::mul, {row, conversions_.coerce(host_value(cols, span), kU32)}, span, "*");
  const Value column = all_.operators.reshaped(conversions_.convert(index, kU32, span), flat, span);
  Value at = all_.operators.scalar_op(ScalarOp::add, {begin, column}, span, "+");
  if (!is_proved) {
    const Value own = all_.operators.reshaped(index, flat, span);
    const Value none = conversions_.coerce(host_value(pool().const_int(kNoPlace), span), kU32);
    at = all_.operators.scalar_op(ScalarOp::select, {is_column(own, column, cols, span), at, none},
                                  span, "[]");
  }
  if (at.is_error()) return at;
  at.facts = {};
  if (is_proved) {
    at.facts.limit = places;
    at.facts.unique = index.facts.unique_in_rows;
    at.facts.assumed = index.facts.assumed;
  }
  return at;
}

// `column` is `index` as u32, where negative numbers are 0.
Value Expressions::is_column(const Value& index, const Value& column, HostExprId cols, Span span) {
  Value below = all_.operators.scalar_op(
      ScalarOp::lt, {column, conversions_.coerce(host_value(cols, span), kU32)}, span, "[]");
  if (index.is_error() || !is_signed_int(index.type.dtype)) return below;
  const Value zero = host_value(pool().const_int(0), span);
  const Value begins = all_.operators.scalar_op(ScalarOp::ge, {index, zero}, span, "[]");
  return all_.operators.scalar_op(ScalarOp::bit_and, {begins, below}, span, "[]");
}

// x[i] with a matrix of column numbers, one row of them for each row of x: element [j, k] is x[j,
// i[j, k]].
Value Expressions::gather_rows(const Value& base, const Value& index, Span span) {
  if (!prover_.proves_equal(base.type.dims[0], index.type.dims[0])) {
    return all_.operators.cannot_combine("[]", base, index, span, false);
  }
  Value at = FOUND(places_in_rows(index, base.type.dims[1], span));
  const Value all = all_.operators.reshaped(
      base, vector_type(base.type.dtype, sizes_.num_elems(base.type)), span);
  const Value found = gather(all, at, span);
  if (!found.is_error()) out_.exprs[found.expr.index()].size = base.type.dims[1];
  Type type = index.type;
  type.dtype = base.type.dtype;
  return found.is_error() ? found : all_.operators.reshaped(found, type, span);
}

}  // namespace cinch::sema
