// Types, shapes and attributes of every op kind except control flow and reductions. One small rule
// for each kind, found in the table at the end.
#include <fmt/format.h>

#include "compiler/ir/ops.h"
#include "compiler/ir/verify_context.h"
#include "runtime/core/extern_function.h"

namespace cinch::ir {
namespace {

// One op under examination: operands and results by type.
class Rules {
 public:
  Rules(const VerifyContext& context, const Op& op) : c_(context), op_(op) {}

  void verify();

 private:
  void require(bool holds, const std::string& message) const {
    if (!holds) throw VerifyFault{op_title(op_) + ": " + message};
  }
  const Type& in(std::size_t i) const { return c_.type(op_.operands[i]); }
  const Type& out(std::size_t i = 0) const { return c_.type(op_.results[i]); }
  std::size_t num_in() const { return op_.operands.size(); }
  HostExprPool& exprs() const { return c_.info.exprs; }

  void require_type(const Type& found, const Type& expected, const char* what) const {
    if (types_agree(c_.info, found, expected)) return;
    require(false, fmt::format("{} is {}, not {}", what, print_type(c_.info, found),
                               print_type(c_.info, expected)));
  }
  void require_out(const Type& expected) const { require_type(out(), expected, "the result"); }
  void require_rank(const Type& type, int rank, const char* what) const {
    require(type.rank == rank, fmt::format("{} has rank {}, not {}", what, type.rank, rank));
  }
  void require_index(const Type& type) const {
    require(is_int(type.dtype), "indices are not integers");
  }
  void require_limit(std::size_t limit, const char* what) const {
    require(op_.attrs.index < limit, fmt::format("there is no {} {}", what, op_.attrs.index));
  }
  void require_has_input(const char* what) const {
    require(!c_.is_init, fmt::format("an initial value sees no {}", what));
  }
  // Rank 1 over all, or rank 2 along an axis.
  void require_line(const Type& type) const {
    const int rank = op_.attrs.axis == kAll ? 1 : 2;
    require(type.rank == rank, "axis all takes a vector, an axis a matrix");
  }

  // Leaves.
  void const_scalar() const {
    require_rank(out(), 0, "the result");
    const DType t = out().dtype;
    if (is_float(t)) return;
    const auto value = static_cast<std::int64_t>(op_.attrs.bits);
    const bool fits = is_signed_int(t)
                          ? value >= min_int(t) && value <= static_cast<std::int64_t>(max_int(t))
                          : op_.attrs.bits <= max_int(t);
    require(fits, "the value does not fit its type");
  }
  void const_array() const {
    require_limit(c_.program.tables.size(), "table");
    const Table& table = c_.program.tables[op_.attrs.index];
    require_out(table.type);
    std::int64_t count = 1;
    for (int d = 0; d < table.type.rank; ++d) {
      const auto size = constant_size(exprs(), table.type.dims[d]);
      require(size.has_value(), "a table's size is not constant");
      count *= size.value_or(0);
    }
    require(count == static_cast<std::int64_t>(table.bits.size()), "a table lacks elements");
  }
  void param() const {
    require_limit(c_.info.params.size(), "parameter");
    require_out(scalar_type(c_.info.params[op_.attrs.index].dtype));
  }
  void host_size() const { require_rank(out(), 0, "the result"); }
  void gradient() const {
    require_has_input("gradient");
    require(c_.function.kind != FunctionKind::Decode, "decode sees no gradient");
    require_out(c_.info.is_matrix ? matrix_type(kF32, exprs().rows(), exprs().cols())
                                  : vector_type(kF32, exprs().n()));
  }
  void state() const {
    require_has_input("state");
    require(c_.function.kind != FunctionKind::Decode, "decode sees no state");
    require_limit(c_.info.states.size(), "state");
    require_out(c_.info.states[op_.attrs.index].type);
  }
  void field() const {
    require_has_input("field");
    require(c_.function.kind == FunctionKind::Decode, "only decode sees fields");
    require_limit(c_.info.wire.fields.size(), "field");
    require_out(c_.info.wire.fields[op_.attrs.index].type);
  }
  void count_value() const {
    require_limit(c_.info.counts.size(), "count");
    require_out(scalar_type(kU32));
  }
  void arg() const {}

  // Generators.
  void iota() const {
    require_rank(out(), 1, "the result");
    require(out().dtype == kU32, "the result is not u32");
  }
  void fill() const {
    const auto met = broadcast_shape(c_.info, out(), in(0));
    require(in(0).dtype == out().dtype, "the element types differ");
    require(met && shapes_agree(c_.info, *met, out()),
            "the operand does not broadcast to the result");
  }
  void iteration(std::size_t index) const {
    if (num_in() <= index) return;
    require(is_scalar(in(index)) && is_int(in(index).dtype),
            "the iteration is not an integer scalar");
  }
  void random() const { draw(kF32); }
  void normal() const { draw(kF32); }
  void random_bits() const { draw(kU32); }
  void draw(DType dtype) const {
    require(out().dtype == dtype, "the result is not " + dtype_name(dtype));
    iteration(0);
  }
  void random_index() const {
    draw(kU32);
    require_rank(out(), 1, "the result");
  }

  // Element-wise.
  void map() const {
    const ScalarOpInfo& info = scalar_op_info(op_.attrs.scalar_op);
    require(static_cast<int>(num_in()) == info.arity, fmt::format("{} operands", num_in()));
    const bool is_select = op_.attrs.scalar_op == ScalarOp::select;
    Type shape = in(0);
    for (std::size_t i = 1; i < num_in(); ++i) {
      const auto met = broadcast_shape(c_.info, shape, in(i));
      if (!met) {
        require(false, fmt::format("operands do not meet ({}, {})", print_type(c_.info, shape),
                                   print_type(c_.info, in(i))));
        return;
      }
      shape = *met;
    }
    const DType element = in(num_in() - 1).dtype;
    for (std::size_t i = is_select ? 1 : 0; i < num_in(); ++i) {
      require(in(i).dtype == element, fmt::format("operands differ in type ({}, {})",
                                                  dtype_name(in(i).dtype), dtype_name(element)));
    }
    if (is_select) {
      require(is_bool(in(0).dtype), "the condition is not bool");
    } else {
      map_element(element);
    }
    DType result = element;
    if (info.result == ScalarResult::Bool) result = kBool;
    if (info.result == ScalarResult::U32) result = kU32;
    require_out(with_dtype(shape, result));
  }
  void map_element(DType t) const {
    using enum ScalarOp;
    const ScalarOp op = op_.attrs.scalar_op;
    const std::string name = dtype_name(t);
    require(!is_narrow_float(t), "arithmetic is not done in " + name);
    const bool is_logical = op == bit_not || op == bit_and || op == bit_or || op == bit_xor;
    const bool is_comparison = op >= eq && op <= ge;
    require(!is_bool(t) || is_logical || is_comparison, "arithmetic is not done in bool");
    const bool is_float_only =
        (op >= sqrt && op <= cos) || op == pow || op == fma || op == isnan || op == isfinite;
    require(!is_float_only || is_float(t), "takes floats, not " + name);
    const bool is_int_only =
        op == popcount || op == clz || op == shl || op == shr || op == ceil_div;
    require(!is_int_only || is_int(t), "takes integers, not " + name);
    require(!is_logical || !is_float(t), "takes integers or bool, not " + name);
  }
  void convert() const { require_out(with_dtype(in(0), out().dtype)); }
  void bitcast() const {
    require(in(0).dtype.bits == out().dtype.bits, "the widths differ");
    require_out(with_dtype(in(0), out().dtype));
  }
  void stochastic_round() const {
    require(is_float(in(0).dtype) && !is_narrow_float(in(0).dtype),
            "the operand is not f32 or f64");
    require_out(in(0));
    iteration(1);
  }

  void call_extern() const {
    require_limit(c_.info.externs.size(), "C++ function");
    const rt::ExternInfo& function = c_.info.externs[op_.attrs.index];
    require(num_in() == function.params.size(), fmt::format("{} operands", num_in()));
    Type shape = in(0);
    for (std::size_t i = 0; i < num_in(); ++i) {
      require(in(i).dtype == function.params[i],
              fmt::format("operand {} is not {}", i, dtype_name(function.params[i])));
      require(rt::is_cpp_type(in(i).dtype), "no type of C++");
      const auto met = broadcast_shape(c_.info, shape, in(i));
      require(met.has_value(), "operands do not meet");
      shape = met.value_or(shape);
    }
    require_out(with_dtype(shape, function.result));
  }

  // Access.
  void gather() const {
    require_index(in(1));
    require(in(0).rank >= 1 && in(1).rank + in(0).rank <= 3, "ranks do not go together");
    Type expected = scalar_type(in(0).dtype);
    for (int d = 0; d < in(1).rank; ++d) expected.dims[expected.rank++] = in(1).dims[d];
    if (in(0).rank == 2) expected.dims[expected.rank++] = in(0).dims[1];
    require_out(expected);
  }
  void gather_along() const {
    require_index(in(1));
    require_rank(in(0), 2, "the matrix");
    require_rank(in(1), 2, "the indices");
    require(op_.attrs.axis != kAll, "an axis is needed");
    const int other = 1 - op_.attrs.axis;
    require(sizes_agree(c_.info, in(0).dims[other], in(1).dims[other]), "lines do not go together");
    require_out(with_dtype(in(1), in(0).dtype));
  }
  void slice() const {
    require(in(0).rank >= 1, "a scalar has no slices");
    Type expected = in(0);
    expected.dims[0] = out().rank >= 1 ? out().dims[0] : HostExprId{};
    require_out(expected);
  }
  void concat() const {
    Type expected = in(0);
    for (std::size_t i = 0; i < num_in(); ++i) {
      require_rank(in(i), 1, "an operand");
      require(in(i).dtype == expected.dtype, "operands differ in type");
      if (i > 0) expected.dims[0] = exprs().add(expected.dims[0], in(i).dims[0]);
    }
    require_out(expected);
  }
  void reshape() const {
    require(in(0).dtype == out().dtype, "the element types differ");
    if (op_.attrs.proved || element_counts_agree(c_.info, in(0), out())) return;
    require(false, fmt::format("{} and {} differ in size", print_type(c_.info, in(0)),
                               print_type(c_.info, out())));
  }
  void keep() const { require_out(in(0)); }
  void transpose() const {
    require_rank(in(0), 2, "the operand");
    require_out(matrix_type(in(0).dtype, in(0).dims[1], in(0).dims[0]));
  }
  void chunk() const {
    require_rank(in(0), 1, "the operand");
    require_rank(out(), 2, "the result");
    const Type expected =
        matrix_type(in(0).dtype, exprs().ceil_div(in(0).dims[0], out().dims[1]), out().dims[1]);
    if (in(0).dtype == out().dtype && element_counts_agree(c_.info, in(0), out())) return;
    require_out(expected);
  }
  void unchunk() const {
    require_rank(in(0), 2, "the operand");
    require_rank(out(), 1, "the result");
    require(in(0).dtype == out().dtype, "the element types differ");
  }
  void pack() const {
    require(!is_float(in(0).dtype), "the operand is not of integers");
    const HostExprId bits =
        exprs().mul(element_count(exprs(), in(0)),
                    exprs().const_int(static_cast<std::int64_t>(op_.attrs.bits)));
    require_out(vector_type(kU8, exprs().ceil_div(bits, exprs().const_int(8))));
  }
  void unpack() const {
    require_rank(in(0), 1, "the operand");
    require(in(0).dtype == kU8, "the operand is not of bytes");
    require_rank(out(), 1, "the result");
    require(is_unsigned_int(out().dtype) && out().dtype.bits >= op_.attrs.bits,
            "the result does not hold the width");
  }
  void reduce() const { verify_combiner(c_, op_); }
  void scan() const { verify_combiner(c_, op_); }

  // Selection.
  void nonzero() const {
    require_limit(c_.info.counts.size(), "count");
    require_rank(in(0), 1, "the mask");
    require(is_bool(in(0).dtype), "the mask is not bool");
    const HostExprId size = exprs().count(op_.attrs.index, c_.info.counts[op_.attrs.index].bound);
    require_out(vector_type(kU32, size));
    require_type(out(1), scalar_type(kU32), "the count");
  }
  void top_k() const {
    require_line(in(0));
    require(op_.attrs.axis != 0, "not along columns");
    require_out(in(0).rank == 1 ? vector_type(kU32, op_.attrs.size)
                                : matrix_type(kU32, in(0).dims[0], op_.attrs.size));
  }
  void kth_largest() const {
    require_line(in(0));
    require(op_.attrs.axis != 0, "not along columns");
    require_out(in(0).rank == 1 ? scalar_type(in(0).dtype)
                                : matrix_type(in(0).dtype, in(0).dims[0], exprs().const_int(1)));
  }
  void argsort() const {
    require_line(in(0));
    require_out(with_dtype(in(0), kU32));
  }

  // Stores.
  void scatter() const {
    const Type &base = in(0), &index = in(1), &values = in(2);
    require_index(index);
    require(base.rank >= 1 && index.rank <= 1, "ranks do not go together");
    Type expected = scalar_type(base.dtype);
    if (index.rank == 1) expected.dims[expected.rank++] = index.dims[0];
    if (base.rank == 2) expected.dims[expected.rank++] = base.dims[1];
    require_type(values, expected, "the values");
    require_out(base);
  }
  void scatter_add() const {
    require_index(in(0));
    require_rank(in(0), 1, "the indices");
    require_type(in(1), with_dtype(in(0), in(1).dtype), "the values");
    require_rank(out(), 1, "the result");
    require(out().dtype == in(1).dtype, "the element types differ");
  }
  void scatter_reduce() const {
    const ScalarOp op = op_.attrs.scalar_op;
    require(op == ScalarOp::min || op == ScalarOp::max, "joins by neither min nor max");
    require(!is_bool(in(1).dtype) && !is_narrow_float(in(1).dtype), "takes numbers of full width");
    scatter_add();
  }
  void histogram() const {
    require(in(0).dtype == kU32, "the values are not u32");
    if (num_in() > 1) require_type(in(1), with_dtype(in(0), kBool), "the mask");
    require_rank(out(), 1, "the result");
    require(out().dtype == kU32, "the result is not u32");
  }

  // Matrix.
  void require_float(const Type& type) const {
    require(type.dtype == kF32 || type.dtype == kF64, "the elements are not f32 or f64");
  }
  void matmul() const {
    const DType dtype = in(0).dtype;
    require(is_float(dtype) ? !is_narrow_float(dtype) : is_int(dtype) && dtype.bits >= 32,
            "arithmetic is not done in the elements' type");
    require_rank(in(0), 2, "the left operand");
    require_rank(in(1), 2, "the right operand");
    require(in(0).dtype == in(1).dtype, "the element types differ");
    require(sizes_agree(c_.info, in(0).dims[1], in(1).dims[0]), "the inner sizes differ");
    require_out(matrix_type(in(0).dtype, in(0).dims[0], in(1).dims[1]));
  }
  void orthonormalize() const {
    require_float(in(0));
    require_rank(in(0), 2, "the operand");
    require_out(in(0));
  }
  void hadamard() const { butterflies(); }
  void butterflies() const {
    orthonormalize();
    const auto width = constant_size(exprs(), in(0).dims[1]);
    require(!width || (*width > 0 && (*width & (*width - 1)) == 0),
            "the row length is no power of two");
  }
  void mark_largest() const {
    require(in(0).dtype == kU32, "the keys are not u32");
    require_rank(in(0), 2, "the keys");
    require(is_scalar(in(1)) && in(1).dtype == kU32, "the number is not a u32 scalar");
    require_out(in(0));
    const auto width = constant_size(exprs(), in(0).dims[1]);
    require(width && *width > 0 && *width <= kMostMarkedColumns,
            "rows of no constant length up to a tile");
  }
  void list_marked() const {
    require(in(0).dtype == kU32, "the marks are not u32");
    require_rank(in(0), 2, "the marks");
    require_out(matrix_type(kU32, in(0).dims[0], op_.attrs.size));
  }

  // Checks.
  void check() const {
    require(is_scalar(in(0)) && is_bool(in(0).dtype), "the condition is not a bool scalar");
  }
  void check_index() const { require_index(in(0)); }
  void check_unique() const { require_index(in(0)); }
  void check_host() const {
    require(exprs().type(op_.attrs.size) == HostType::Bool, "the condition is not bool");
  }

  // Control.
  void if_else() const { verify_control_types(c_, op_); }
  void for_loop() const { verify_control_types(c_, op_); }
  void while_loop() const { verify_control_types(c_, op_); }
  void yield() const {}

  // Collectives.
  void require_sync() const {
    require(c_.function.kind == FunctionKind::Sync && !c_.is_init, "stands outside sync");
  }
  void require_joins() const {
    require_sync();
    const auto op = c_.function.combiners[op_.attrs.combiner.index()].op;
    require(op == ScalarOp::add || op == ScalarOp::min || op == ScalarOp::max,
            "joins by add, min or max only");
  }
  void require_by_rank(const Type& type) const {
    require_rank(type, 2, "the array by rank");
    require(sizes_agree(c_.info, type.dims[0], exprs().world()),
            "the rows are not one for each rank");
  }
  void all_reduce() const {
    require_joins();
    require_out(in(0));
  }
  void all_gather() const {
    require_sync();
    require_rank(in(0), 1, "the operand");
    require_out(matrix_type(in(0).dtype, exprs().world(), in(0).dims[0]));
  }
  void all_to_all() const {
    require_sync();
    require_by_rank(in(0));
    require_out(in(0));
  }
  void reduce_scatter() const {
    require_joins();
    require_by_rank(in(0));
    require_out(vector_type(in(0).dtype, in(0).dims[1]));
  }
  void broadcast() const {
    require_sync();
    require_out(in(0));
  }
  void require_number(std::size_t operand, const char* what) const {
    require_type(in(operand), scalar_type(kU32), what);
  }
  void send_receive() const {
    require_sync();
    require_number(1, "the receiver");
    require_out(in(0));
  }
  // Whether the elements fit the result is checked when the ranks meet.
  void require_counted() const {
    require_sync();
    require_rank(in(0), 1, "the operand");
    require_rank(out(), 1, "the result");
    require(out().dtype == in(0).dtype, "the result has another element type");
    require(!exprs().has_count(out().dims[0]), "the result's length is not known before launch");
    require_type(out(1), scalar_type(kU32), "the number of elements");
  }
  void all_gather_counted() const {
    require_counted();
    require_number(1, "the length");
  }
  void send_receive_counted() const {
    require_counted();
    require_number(1, "the receiver");
    require_number(2, "the length");
  }

  const VerifyContext& c_;
  const Op& op_;
};

void Rules::verify() {
  switch (op_.kind) {
#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  case OpKind::name:                                                                               \
    return name();
#include "compiler/ir/ops.def"
  }
}

}  // namespace

void verify_op_types(const VerifyContext& context, const Op& op) {
  Rules(context, op).verify();
}

}  // namespace cinch::ir
