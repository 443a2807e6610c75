// Gathers and slices.
#include "dsl/sema/expressions/expressions.h"

#include <utility>

#include "dsl/diag/foreign_words.h"
#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Expressions::index_expr(const ast::Index& node, Span span) {
  const Value base = FOUND(expr(node.base));
  const auto indices = tree().list(node.indices);
  const bool is_array = base.kind == ValueKind::Table || (base.is_typed() && base.type.rank > 0);
  const std::size_t rank = is_array ? types_.value_type(base).rank : 0;
  if (!is_array || indices.size() > rank) {
    auto& diag = reporter_.report<DiagKind::CannotIndex>(span, text_.describe(base));
    if (is_array) diag.note(rank == 1 ? "it takes 1 index" : "it takes at most 2 indices");
    return error_value(span);
  }
  const bool is_range = std::holds_alternative<ast::Range>(tree()[indices[0]].node);
  if (is_by_rows() && rank == 2 && (is_range || indices.size() > 1))
    return all_.items.not_by_rows("a slice", span);
  const Type shape = types_.value_type(base);
  const Place rows = FOUND(place(indices[0], shape.dims[0], span));
  if (indices.size() == 1) return at_place(base, rows, span);
  const Place cols = FOUND(place(indices[1], shape.dims[1], span));
  return at_places(base, rows, cols, span);
}

std::optional<Place> Expressions::place(ast::ExprId id, HostExprId size, Span span) {
  Place found{.span = tree()[id].span};
  if (const auto* range = std::get_if<ast::Range>(&tree()[id].node)) {
    found.bounds = FOUND(bounds(*range, size, span));
  } else {
    found.at = FOUND(expr(id));
  }
  return found;
}

Value Expressions::at_place(const Value& base, const Place& place, Span span) {
  if (base.is_error()) return base;
  if (place.bounds) return cut(base, *place.bounds, span);
  const Value& index = place.at;
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

std::optional<Bounds> Expressions::bounds(const ast::Range& range, HostExprId size, Span span) {
  const auto known = [&](ast::ExprId id) {
    const std::size_t errors = reporter_.num_errors();
    const auto found = symbolic(id);
    if (!found && reporter_.num_errors() == errors) {
      reporter_.report<DiagKind::NotKnownOnHost>(tree()[id].span, "a slice");
    }
    return found;
  };
  const auto begin = range.lo ? known(range.lo) : std::optional(pool().const_int(0));
  auto end = range.hi ? known(range.hi) : std::optional(size);
  if (!begin || !end) return std::nullopt;
  if (range.is_inclusive) end = pool().add(*end, pool().const_int(1));
  Bounds found{.begin = *begin, .end = *end, .is_whole = !range.lo && !range.hi};
  if (!has_loop_leaf(*begin) && !has_loop_leaf(*end)) return found;
  found.size = sizes_.length_of(*begin, *end);
  if (has_loop_leaf(found.size))
    return mistake<DiagKind::NotKnownOnHost>(span, "the length of a slice");
  found.first = FOUND(as_index(range.lo ? expr(range.lo) : host_value(*begin, span)));
  return found;
}

Value Expressions::cut(const Value& base, const Bounds& bounds, Span span) {
  if (base.is_error()) return base;
  if (base.kind != ValueKind::Table) return cut_typed(conversions_.unmet(base), bounds, span);
  const Value part = FOUND(cut_typed(conversions_.materialize(base), bounds, span));
  // Its bounds were checked once, whatever type the elements take.
  return all_.numbers.made_of_exact(base, span, [=, this](const Value& made) {
    Expr again = out_.exprs[part.expr.index()];
    again.args[0] = made.expr;
    again.type.dtype = made.type.dtype;
    return build_.typed(std::move(again));
  });
}

Value Expressions::cut_typed(const Value& base, const Bounds& bounds, Span span) {
  if (base.is_error()) return base;
  return bounds.size ? slice_at(base, bounds.first, bounds.size, span)
                     : make_slice(base, bounds.begin, bounds.end, span);
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

bool Expressions::holds_bounds(HostExprId begin, HostExprId end, HostExprId size, Span span) {
  return build_.require_nonnegative(begin, "the begin of a slice is not negative", span) &&
         build_.require_at_most(begin, end, "a slice ends behind its begin", span) &&
         build_.require_at_most(end, size, "the slice ends at most at " + sizes_.size_text(size),
                                span);
}

Value Expressions::slice_of(const Value& base, HostExprId begin, HostExprId end, Span span) {
  const HostExprId size = base.type.dims[0];
  if (is_from_the_end(begin, size, text_of(base), "..]", span)) return error_value(span);
  if (!holds_bounds(begin, end, size, span)) return error_value(span);
  Expr made{.kind = ExprKind::Slice, .type = base.type, .span = span, .size = begin, .size2 = end};
  made.type.dims[0] = sizes_.length_of(begin, end);
  made.args = {base.expr};
  made.proved_in_bounds = !pool().has_count(size) || prover_.proves_less_equal(end, size);
  Value result = build_.typed(std::move(made));
  result.facts = base.facts;
  return result;
}

}  // namespace cinch::sema
