// `x[i]`, `x[i, j]` and `x[a..b]`: their shapes, and what is known of a result that is itself an
// index. Bounds are proved, checked before launch, or checked at run time where the index is used.
#pragma once

#include <optional>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Indexing : Part {
 public:
  using Part::Part;

  /// `x[i]`, `x[i, j]`, `x[a..b]`.
  Value index_expr(const ast::Index& node, Span span);
  /// Converts an index to a typed integer; reports other values.
  Value as_index(const Value& value);
  /// Requires that a host-computed index is in bounds.
  void check_host_index(const Value& index, HostExprId size, Span span);
  Value gather(const Value& base, const Value& index, Span span);
  /// Turns indices within the rows of a matrix into indices of all its elements, row by row.
  Value places_in_rows(const Value& index, HostExprId cols, Span span);
  /// A host expression with loop variables as leaves; nothing if there is none.
  std::optional<HostExprId> symbolic(ast::ExprId id);
  /// `base[range]`.
  Value slice(const Value& base, const ast::Range& range, Span span);
  /// `size` elements from a place that the device computes.
  Value slice_at(const Value& base, const Value& begin, HostExprId size, Span span);
  /// A slice between bounds that the host computes.
  Value make_slice(const Value& base, HostExprId begin, HostExprId end, Span span);
  /// The range `a..b` of an assignment as indices a, a + 1 … b - 1.
  Value index_of_range(const ast::Range& range, const Type& type, Span span);

 private:
  Value look_up(const Value& array, const Value& index, Span span);
  Value index_value(const Value& base, ast::ExprId id, Span span);
  Value gather_flat(const Value& base, const Value& index, Span span);
  Value is_column(const Value& index, const Value& column, HostExprId cols, Span span);
  Value gather_rows(const Value& base, const Value& index, Span span);
  bool has_loop_leaf(HostExprId id);
  Value slice_of(const Value& base, HostExprId begin, HostExprId end, Span span);
};

}  // namespace cinch::sema
