// Gathers and slices.
#include "dsl/sema/expressions/expressions.h"

#include <utility>

#include "dsl/diag/foreign_words.h"
#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

constexpr std::int64_t kNoPlace = UINT32_MAX;

}  // namespace

Value Expressions::index_expr(const ast::Index& node, Span span) {
  Value base = FOUND(expr(node.base));
  const auto indices = tree().list(node.indices);
  const bool is_array = base.kind == ValueKind::Table || (base.is_typed() && base.type.rank > 0);
  const std::size_t rank = is_array ? types_.value_type(base).rank : 0;
  if (!is_array || indices.size() > rank) {
    auto& diag = reporter_.report<DiagKind::CannotIndex>(span, text_.describe(base));
    if (is_array) diag.note(rank == 1 ? "it takes 1 index" : "it takes at most 2 indices");
    return error_value(span);
  }
  for (ast::ExprId index : indices) {
    const bool is_matrix = is_by_rows() && rank == 2;
    const bool is_range = std::holds_alternative<ast::Range>(tree()[index].node);
    if (is_matrix && (is_range || indices.size() > 1))
      return all_.items.not_by_rows("a slice", span);
    Value next = FOUND(index_value(base, index, span));
    // numpy would take columns with the next index, not rows of what was selected.
    if (index != indices.back() && types_.value_type(next).rank >= types_.value_type(base).rank)
      return mistake<DiagKind::IndexOfRows>(tree()[index].span);
    base = std::move(next);
  }
  return base;
}

Value Expressions::index_value(const Value& base, ast::ExprId id, Span span) {
  if (base.kind != ValueKind::Table && (!base.is_typed() || base.type.rank == 0))
    return mistake<DiagKind::BadIndex>(tree()[id].span, text_.describe(base));
  if (const auto* range = std::get_if<ast::Range>(&tree()[id].node)) {
    if (base.kind != ValueKind::Table) return slice(conversions_.unmet(base), *range, span);
    Value cut = FOUND(slice(conversions_.materialize(base), *range, span));
    // The names in the range have their meaning only here.
    return all_.numbers.made_of_exact(base, span, [=, this](const Value& made) {
      Expr again = out_.exprs[cut.expr.index()];
      again.args[0] = made.expr;
      again.type.dtype = made.type.dtype;
      return build_.typed(std::move(again));
    });
  }
  const Value index = FOUND(expr(id));
  const bool is_by_row = base.table_cols != 0;
  const bool is_known = base.kind == ValueKind::Table && !(is_by_row && is_by_rows()) &&
                        index.is_host() && pool().is_const(index.host) &&
                        pool().type(index.host) == HostType::Int;
  const std::size_t size = is_by_row ? base.table.size() / base.table_cols : base.table.size();
  const bool is_inside = !is_known || pool().const_value(index.host).bits < size;
  // No array has this many elements.
  if (index.is_big || !is_inside)
    return mistake<DiagKind::OutOfRange>(index.span, "index " + text_.number_text(index),
                                         text_.describe(base));
  // If the array holds exact numbers, the result takes the type of the operand with which it is
  // combined.
  if (!is_known) {
    return all_.numbers.made_of_exact(
        base, span, [=, this](const Value& made) { return gather(made, index, span); });
  }
  const std::size_t at = pool().const_value(index.host).bits;
  Value element = is_by_row ? table_row(base, at) : table_element(base, at);
  element.span = span;
  return element;
}

Value Expressions::as_index(const Value& value) {
  if (value.is_error()) return value;
  const auto own = types_.own_dtype(value);
  const bool is_number = value.is_host() || value.is_typed() || value.kind == ValueKind::Table;
  const bool is_integer = own ? is_int(*own) : is_number && types_.can_coerce(value, kI64);
  if (!is_integer) {
    auto& diag = reporter_.report<DiagKind::BadIndex>(value.span, text_.describe(value));
    if (own == kBool) diag.note(dsl::foreign_note(dsl::ForeignPlace::Syntax, "[mask]"));
    return error_value(value.span);
  }
  Value made = conversions_.materialize(value);
  made.facts = value.facts;
  return made;
}

// An index or the begin of a slice that is less than 0, as in numpy, where it counts from the end.
// `rest` is what follows the number: "]" or "..]".
bool Expressions::is_from_the_end(HostExprId at, HostExprId size, std::string_view array,
                                  std::string_view rest, Span span) {
  if (!pool().is_const(at) || pool().const_value(at).as_int() >= 0) return false;
  const std::string number = sizes_.size_text(at), name(array);
  reporter_.report<DiagKind::OutOfRange>(span, "index " + number, "`" + name + "`")
      .note(dsl::foreign_note(
          dsl::ForeignPlace::Syntax, "[-]",
          name + "[" + sizes_.size_text(size) + " - " + number.substr(1) + std::string(rest)));
  return true;
}

// The text of an operand, for messages.
std::string_view Expressions::text_of(const Value& value) const {
  constexpr std::size_t kMost = 40;
  const dsl::SourceBuffer& source = *env_->unit->source;
  if (value.span.file != source.id()) return "x";
  const std::string_view text = source.text(value.span);
  return text.empty() || text.size() > kMost ? "x" : text;
}

void Expressions::check_host_index(const Value& index, HostExprId size, std::string_view array,
                                   Span span) {
  const HostExprId at = index.host;
  if (is_from_the_end(at, size, array, "]", span)) return;
  const std::string what = "index " + sizes_.size_text(at) + " is below " + sizes_.size_text(size);
  const bool is_natural =
      build_.require_nonnegative(at, "index " + sizes_.size_text(at) + " is not negative", span);
  if (!is_natural || prover_.proves_less(at, size)) return;
  build_.require(pool().make(HostOp::Lt, at, size), what, span,
                 sizes_.size_text(at) + " >= " + sizes_.size_text(size));
}

Value Expressions::gather(const Value& base, const Value& index, Span span) {
  if (is_by_rows() && base.type.rank == 2 && index.type.rank != 2) {
    return all_.items.not_by_rows("an index of all rows", span);
  }
  const Value at = as_index(index);
  if (at.is_error() || base.is_error()) return error_value(span);
  const bool is_host_index = index.is_host() && pool().type(index.host) == HostType::Int;
  if (mode_.lambda_depth > 0 && at.type.rank > 0 && all_.calls.check_lambda_array(at).is_error()) {
    return error_value(span);
  }
  if (at.type.rank == 2) {
    return base.type.rank == 1 ? gather_flat(base, at, span) : gather_rows(base, at, span);
  }
  Expr made{ExprKind::Index, base.type, span};
  if (base.type.rank == 1) {
    made.type = at.type;
  } else if (at.type.rank == 0) {
    made.type = vector_type(base.type.dtype, base.type.dims[1]);
  } else {
    made.type = matrix_type(base.type.dtype, at.type.dims[0], base.type.dims[1]);
  }
  made.type.dtype = base.type.dtype;
  made.args = {base.expr, at.expr};
  const HostExprId size = base.type.dims[0];
  const bool checks_before_launch =
      is_host_index && !pool().has_count(size) && !pool().has_count(index.host);
  if (checks_before_launch) check_host_index(index, size, text_of(base), index.span);
  made.proved_in_bounds = checks_before_launch || all_.facts.is_in_bounds(at, size);
  Value result = build_.typed(std::move(made));
  result.facts.limit = base.facts.limit;
  result.facts.assumed = base.facts.assumed | at.facts.assumed;
  if (at.type.rank == 0 && base.type.rank == 2) result.facts.unique = base.facts.unique_in_rows;
  if (at.type.rank == 1 && base.type.rank == 1) {
    result.facts.unique = base.facts.unique && at.facts.unique;
    result.facts.ascending = base.facts.ascending && at.facts.ascending;
  }
  return result;
}

// Looks up a table by a matrix of indices, through a vector of them.
Value Expressions::gather_flat(const Value& base, const Value& index, Span span) {
  const HostExprId size = sizes_.num_elems(index.type);
  Value flat = all_.operators.reshaped(index, vector_type(index.type.dtype, size), span);
  flat.facts.limit = index.facts.limit;
  flat.facts.assumed = index.facts.assumed;
  Value found = FOUND(gather(base, flat, span));
  Type type = index.type;
  type.dtype = found.type.dtype;
  Value result = all_.operators.reshaped(found, type, span);
  result.facts.limit = base.facts.limit;
  result.facts.assumed = base.facts.assumed;
  return result;
}

// Turns a row of column numbers for each row of a matrix with `cols` columns into places in the
// flat array: j * cols + i[j, k]. A number that may not be a column becomes the largest integer,
// which is not a valid place, so that it never means an element of another row.
Value Expressions::places_in_rows(const Value& index, HostExprId cols, Span span) {
  const HostExprId width = index.type.dims[1], count = sizes_.num_elems(index.type);
  const HostExprId places = pool().mul(index.type.dims[0], cols);
  const bool is_proved = all_.facts.is_in_bounds(index, cols);
  // The number of all places, or one less if the last number means "none".
  const HostExprId most = pool().const_int(is_proved ? kNoPlace + 1 : kNoPlace);
  const std::string what = sizes_.size_text(places) + " elements are numbered by 32 bits";
  if (!build_.require_at_most(places, most, what, span)) return error_value(span);
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

std::optional<HostExprId> Expressions::symbolic(ast::ExprId id) {
  const ModeScope scope(mode_);
  mode_.in_leaves = true;
  mode_.in_host = true;
  const Value value = expr(id);
  const bool is_size =
      value.is_host() && !value.is_big && pool().type(value.host) != HostType::Bool;
  return is_size ? std::optional(pool().cast(value.host, HostType::Int)) : std::nullopt;
}

// Loop variables are parameter leaves with numbers that no real parameter has.
bool Expressions::has_loop_leaf(HostExprId id) {
  bool found = false;
  pool().substitute(id, [&](const HostExprNode& leaf) {
    found |= leaf.op == HostOp::Param && leaf.payload >= (1u << 24);
    return HostExprId();
  });
  return found;
}

Value Expressions::slice(const Value& base, const ast::Range& range, Span span) {
  const auto known = [&](ast::ExprId id) {
    const std::size_t errors = reporter_.num_errors();
    const auto size = symbolic(id);
    if (!size && reporter_.num_errors() == errors) {
      reporter_.report<DiagKind::NotKnownOnHost>(tree()[id].span, "a slice");
    }
    return size;
  };
  if (base.is_error()) return base;
  const auto begin = range.lo ? known(range.lo) : std::optional(pool().const_int(0));
  auto end = range.hi ? known(range.hi) : std::optional(base.type.dims[0]);
  if (!begin || !end || base.is_error()) return error_value(span);
  if (range.is_inclusive) end = pool().add(*end, pool().const_int(1));
  if (!has_loop_leaf(*begin) && !has_loop_leaf(*end)) return make_slice(base, *begin, *end, span);
  const HostExprId size = sizes_.length_of(*begin, *end);
  if (has_loop_leaf(size)) return mistake<DiagKind::NotKnownOnHost>(span, "the length of a slice");
  const Value first = range.lo ? expr(range.lo) : host_value(*begin, span);
  return slice_at(base, as_index(first), size, span);
}

Value Expressions::slice_at(const Value& base, const Value& begin, HostExprId size, Span span) {
  if (begin.is_error()) return begin;
  build_.require_nonnegative(size, "the length of a slice is not negative", span);
  Expr made{ExprKind::Slice, base.type, span};
  made.type.dims[0] = size;
  made.args = {base.expr, begin.expr};
  Value result = build_.typed(std::move(made));
  result.facts = base.facts;
  return result;
}

Value Expressions::make_slice(const Value& base, HostExprId begin, HostExprId end, Span span) {
  return build_.behind_filter(
      base, span, [&](const Value& counted) { return slice_of(counted, begin, end, span); });
}

Value Expressions::slice_of(const Value& base, HostExprId begin, HostExprId end, Span span) {
  const HostExprId size = base.type.dims[0];
  if (is_from_the_end(begin, size, text_of(base), "..]", span)) return error_value(span);
  const bool is_possible =
      build_.require_nonnegative(begin, "the begin of a slice is not negative", span) &&
      build_.require_at_most(begin, end, "a slice ends behind its begin", span) &&
      build_.require_at_most(end, size, "the slice ends at most at " + sizes_.size_text(size),
                             span);
  if (!is_possible) return error_value(span);
  Expr made{.kind = ExprKind::Slice, .type = base.type, .span = span, .size = begin, .size2 = end};
  made.type.dims[0] = sizes_.length_of(begin, end);
  made.args = {base.expr};
  made.proved_in_bounds = !pool().has_count(size) || prover_.proves_less_equal(end, size);
  Value result = build_.typed(std::move(made));
  result.facts = base.facts;
  return result;
}

Value Expressions::index_of_range(const ast::Range& range, const Type& type, Span span) {
  const auto begin =
      range.lo ? all_.numbers.host_size(range.lo, "a slice") : std::optional(pool().const_int(0));
  auto end = range.hi ? all_.numbers.host_size(range.hi, "a slice") : std::optional(type.dims[0]);
  if (!begin || !end) return error_value(span);
  if (range.is_inclusive) end = pool().add(*end, pool().const_int(1));
  const bool is_possible =
      build_.require_nonnegative(*begin, "the begin of a slice is not negative", span) &&
      build_.require_at_most(*begin, *end, "a slice ends behind its begin", span) &&
      build_.require_at_most(*end, type.dims[0],
                             "the slice ends at most at " + sizes_.size_text(type.dims[0]), span);
  if (!is_possible) return error_value(span);
  const HostExprId size = sizes_.length_of(*begin, *end);
  const Value numbers = build_.builtin(BuiltinId::iota, vector_type(kU32, size), {}, span,
                                       [&](Expr& e) { e.size = size; });
  Value index = all_.operators.scalar_op(
      ScalarOp::add, {numbers, conversions_.coerce(host_value(*begin, span), kU32)}, span, "+");
  index.facts = {true, true, type.dims[0]};
  return index;
}

}  // namespace cinch::sema
