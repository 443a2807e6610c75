// The operators of the language, one class for each group.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// Shapes: broadcasts operands, makes rows of matrices, reshapes.
class Shapes : Part {
 public:
  using Part::Part;

  /// Is a vector a row of a matrix, because it has as many elements as the matrix has columns?
  bool is_row_of(const Type& a, const Type& b);
  /// Turns a vector into the row of a matrix with which it is combined.
  Value as_row(const Value& value, const Type& shape);
  /// The common shape of operands by numpy's rules, where only a constant 1 counts as size 1.
  /// Reports operands that do not fit and returns nothing.
  std::optional<Type> broadcast(std::span<const Value> args, Span span, std::string_view name);
  Value reshaped(const Value& value, const Type& type, Span span);
  /// Repeats the value's elements to fill a shape that it broadcasts to.
  Value repeated(const Value& value, const Type& shape, Span span);

 private:
  Type with_rank_of(const Type& type, const Type& other);
  std::optional<Type> joined(const Type& a, const Type& b);
};

/// Element-wise operators: operand types, and the choice between host and device.
class ScalarOperators : Part {
 public:
  using Part::Part;

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

 private:
  void warn_of_chain(const ast::Binary& node, Span span);
  std::vector<Value> with_big_settled(ScalarOp op, std::vector<Value> args);
  std::optional<DType> cannot_apply(const Value& value, std::string_view name);
  std::optional<DType> one_operand_type(ScalarOp op, const Value& arg, std::string_view name);
};

/// The operators map, fill, len and floor_div.
class MapOperators : Part {
 public:
  using Part::Part;

  /// `map(x, …, |a, …| e)`.
  Value map_call(const CallArgs& args);
  /// `fill(v, size)`.
  Value fill_call(const CallArgs& args);
  /// `len(x)`.
  Value len_call(const CallArgs& args);
  /// `floor_div(a, b)`.
  Value floor_div_call(const CallArgs& args);
};

/// Reductions and scans of whole arrays or along an axis.
class Reductions : Part {
 public:
  using Part::Part;

  /// The type of a reduction along an axis; axis -1 reduces all elements.
  Type reduced_type(const Type& type, int axis, DType dtype);
  /// Is the length along the axis known before launch? Reports a count.
  bool is_known_line(const Value& x, int axis, std::string_view name);
  /// A reduction by name.
  Value reduce_call(BuiltinId id, const CallArgs& args);
  /// `reduce(x, init, |a, b| e)`.
  Value reduce_lambda_call(const CallArgs& args);
  /// `scan` and `cumsum`.
  Value scan_call(BuiltinId id, const CallArgs& args);

 private:
  Value dot_call(const CallArgs& args);
  Value reduced(BuiltinId id, const CallArgs& args, std::vector<Value> xs, DType result);
  bool joins_scalars(std::size_t first_expr, std::size_t first_stmt);
  std::optional<std::pair<Value, Value>> lambda_pair(const CallArgs& args, const Value& x,
                                                     Value& init);
};

/// Filters and sorts, and facts about their indices.
class Selections : Part {
 public:
  using Part::Part;

  /// `filter` and `nonzero`.
  Value filter_call(BuiltinId id, const CallArgs& args);
  /// `sort`, `argsort` and `sort_by_key`.
  Value sort_call(BuiltinId id, const CallArgs& args);
  /// `top_k` and `kth_largest`.
  Value top_k_call(BuiltinId id, const CallArgs& args);

 private:
  Value top_k_of(BuiltinId id, const CallArgs& args, const Value& x, HostExprId k);
};

/// Operators that move elements: scatter, concat, slice, reshape, transpose, chunk, pack, iota and
/// histogram.
class MoveOperators : Part {
 public:
  using Part::Part;

  Value move_call(BuiltinId id, const CallArgs& args);

 private:
  Value pack_call(BuiltinId id, const CallArgs& args);
  Value concat_call(const CallArgs& args);
  Value slice_call(const CallArgs& args);
  std::optional<Value> reshaped_table(const Value& table, std::span<const HostExprId> dims);
  static Value transposed_table(const Value& table);
  Value reshape_call(const CallArgs& args);
  Value transpose_call(const CallArgs& args);
  Value chunk_call(BuiltinId id, const CallArgs& args);
  Value iota_call(const CallArgs& args);
  Value histogram_call(const CallArgs& args);
  Value scatter_call(BuiltinId id, const CallArgs& args);
  // `in_rows`: values, indices and result consist of rows, and each index stays in its row.
  Value scatter_at(const Scatter& how, const Value& v, const Value& at, HostExprId size, Span span,
                   bool in_rows = false);
  Value scatter_rows(const Scatter& how, const Value& v, const Value& at, HostExprId size,
                     Span span);
};

/// Random draws and their numbers.
class RandomDraws : Part {
 public:
  using Part::Part;

  /// An array of draws.
  Value random_call(BuiltinId id, const CallArgs& args);
  /// `stochastic_round(x)`.
  Value stochastic_round_call(const CallArgs& args);

 private:
  void number_draw(Expr& made, const CallArgs& args);
};

/// Matrix operators: products, orthonormal bases and Hadamard transforms.
class MatrixOperators : Part {
 public:
  using Part::Part;

  /// `a @ b`.
  Value matmul(const Value& a, const Value& b, Span span);
  /// Any other matrix operator.
  Value matrix_call(BuiltinId id, const CallArgs& args);
};

/// Collectives of `sync`, and the counts of received arrays.
class Collectives : Part {
 public:
  using Part::Part;

  Value collective_call(BuiltinId id, const CallArgs& args);

 private:
  Value allreduce_call(const CallArgs& args);
  Value sendrecv_call(const CallArgs& args);
  bool is_counted_vector(const Value& x);
  Value counted_collective(BuiltinId id, const Value& x, ExprId to, Span span);
  Value per_rank_call(BuiltinId id, const CallArgs& args);
};

}  // namespace cinch::sema
