// The operators of the language, by group.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// The operators of the language, by group.
class Operators : Part {
 public:
  using Part::Part;

  // Shapes: broadcasts operands, makes rows of matrices, reshapes.
  /// Is a vector a row of a matrix, because it has as many elements as the matrix has columns?
  bool is_row_of(const Type& a, const Type& b);
  /// Turns a vector into the row of a matrix with which it is combined.
  Value as_row(const Value& value, const Type& shape);
  /// The common shape of operands by numpy's rules, where only a constant 1 counts as size 1.
  /// Reports operands that do not fit and returns nothing.
  std::optional<Type> broadcast(std::span<const Value> args, Span span, std::string_view name);
  Value reshaped(const Value& value, const Type& type, Span span);
  Value transposed(const Value& x, Span span);
  /// Repeats the value's elements to fill a shape that it broadcasts to.
  Value repeated(const Value& value, const Type& shape, Span span);

  // Element-wise operators: operand types, and the choice between host and device.
  /// `-x`, `!x`.
  Value unary(const ast::Unary& node, Span span);
  /// `a + b` and its like.
  Value binary(const ast::Binary& node, Span span);
  /// The same for values.
  Value binary_op(ast::BinaryOp op, const Value& a, const Value& b, Span span);
  /// Applies an element-wise operator, on the host if possible, else on the device.
  Value scalar_op(ScalarOp op, std::vector<Value> args, Span span, std::string_view name);
  /// Reports operands that cannot be combined. `joins_types`: the operator needs a common type, so
  /// a conversion may help.
  Value cannot_combine(std::string_view name, const Value& a, const Value& b, Span span,
                       bool joins_types = true);
  /// The common type of the operands. Reports operands without one and returns nothing.
  std::optional<DType> operand_type(ScalarOp op, const std::vector<Value>& args, Span span,
                                    std::string_view name);
  /// Applies an element-wise operator on the device.
  Value typed_scalar_op(ScalarOp op, std::vector<Value> args, Span span, std::string_view name);

  // The operators map, fill, len and floor_div.
  /// `map(x, …, |a, …| e)`.
  Value map_call(const CallArgs& args);
  /// `fill(v, size)`.
  Value fill_call(const CallArgs& args);
  /// `len(x)`.
  Value len_call(const CallArgs& args);
  /// `floor_div(a, b)`.
  Value floor_div_call(const CallArgs& args);

  // Reductions and scans of whole arrays or along an axis.
  /// The type of a reduction along an axis; axis -1 reduces all elements.
  Type reduced_type(const Type& type, int axis, DType dtype);
  /// Is the length along the axis known before launch? Reports a count.
  bool is_known_line(const Value& x, int axis, std::string_view name);
  /// A reduction by name.
  Value reduce_call(const CallArgs& args);
  /// The sum of `x * y`, with operands broadcast as for `*`.
  Value dot_call(const CallArgs& args);
  /// `reduce(x, init, |a, b| e)`.
  Value reduce_lambda_call(const CallArgs& args);
  /// `scan` and `cumsum`.
  Value scan_call(const CallArgs& args);

  // Filters and sorts, and facts about their indices.
  /// `filter` and `nonzero`.
  Value filter_call(const CallArgs& args);
  /// The elements (or their indices) where a mask is true. `args` names who filters.
  Value filtered(const CallArgs& args, const Value& x, const Value& where, HostExprId limit);
  /// `sort`, `argsort` and `sort_by_key`.
  Value sort_call(const CallArgs& args);
  /// `top_k`, `kth_largest` and `median`.
  Value top_k_call(const CallArgs& args);
  Value quantile_call(const CallArgs& args);
  Value searchsorted_call(const CallArgs& args);

  // Operators that move elements.
  Value pack_call(const CallArgs& args);
  Value concat_call(const CallArgs& args);
  Value stack_call(const CallArgs& args);
  Value flip_call(const CallArgs& args);
  Value slice_call(const CallArgs& args);
  Value reshape_call(const CallArgs& args);
  Value transpose_call(const CallArgs& args);
  Value chunk_call(const CallArgs& args);
  Value iota_call(const CallArgs& args);
  Value histogram_call(const CallArgs& args);
  Value scatter_call(const CallArgs& args);

  // Random draws and their numbers.
  /// An array of draws.
  Value random_call(const CallArgs& args);
  /// `stochastic_round(x)`.
  Value stochastic_round_call(const CallArgs& args);

  // Matrix operators: products, orthonormal bases and Hadamard transforms.
  Value outer_call(const CallArgs& args);
  /// `a @ b`.
  Value matmul(const Value& a, const Value& b, Span span);
  /// Any other matrix operator.
  Value matrix_call(const CallArgs& args);

  // Collectives of `sync`, and the counts of received arrays.
  Value collective_call(const CallArgs& args);

 private:
  Type with_rank_of(const Type& type, const Type& other);
  std::optional<Type> joined(const Type& a, const Type& b);
  void warn_of_chain(const ast::Binary& node, Span span);
  std::vector<Value> with_big_settled(ScalarOp op, std::vector<Value> args);
  std::optional<DType> cannot_apply(const Value& value, std::string_view name);
  std::optional<DType> one_operand_type(ScalarOp op, const Value& arg, std::string_view name);
  Value reduced(const CallArgs& args, std::vector<Value> xs, DType result);
  bool joins_scalars(std::size_t first_expr, std::size_t first_stmt);
  std::optional<std::pair<Value, Value>> lambda_pair(const CallArgs& args, const Value& x,
                                                     Value& init);
  std::optional<int> ranked_axis(const CallArgs& args, const Value& x);
  Value top_k_of(const CallArgs& args, const Value& x, std::optional<HostExprId> given_k);
  Value kth_largest_node(const Value& x, int along, HostExprId k, Span span);
  Value quantile_of(const CallArgs& args, const Value& x, HostExprId q);
  Value ranked_where(const CallArgs& args, const Value& x, HostExprId q,
                     const std::function<Value(const Value&)>& of_all);
  Value or_least(const Value& x, const Value& mask, Span span);
  std::optional<std::vector<Value>> parts_of(const CallArgs& args);
  Value joined(std::span<const Value> parts, const Type& type, int axis, Span span);
  std::optional<Value> reshaped_table(const Value& table, std::span<const HostExprId> dims);
  static Value transposed_table(const Value& table);
  // `in_rows`: values, indices and result consist of rows, and each index stays in its row.
  Value scatter_at(const Scatter& how, const Value& v, const Value& at, HostExprId size, Span span,
                   bool in_rows = false);
  Value scatter_rows(const Scatter& how, const Value& v, const Value& at, HostExprId size,
                     Span span);
  void number_draw(Expr& made, const CallArgs& args);
  Value allreduce_call(const CallArgs& args);
  Value sendrecv_call(const CallArgs& args);
  bool is_counted_vector(const Value& x);
  Value counted_collective(BuiltinId id, const Value& x, ExprId to, Span span);
  Value per_rank_call(const CallArgs& args);
  Value broadcast_call(const CallArgs& args);
  // Of `group:` and `stride:`; invalid ids: all ranks.
  struct Groups {
    HostExprId size, stride;
  };
  bool is_of_known_size(const Value& x, std::string_view name);
  std::optional<Groups> groups_of(const CallArgs& args);
  /// How many ranks a group has.
  HostExprId size_of(const Groups& groups);
  /// The type of `in:`; none if there is none. Returns nothing after a mistake.
  std::optional<std::optional<DType>> travels_in(const CallArgs& args);
};

}  // namespace cinch::sema
