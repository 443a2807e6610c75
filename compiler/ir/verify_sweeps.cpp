// Types, shapes and attributes: selection, stores, matrices, checks and collectives.
#include "compiler/ir/ops.h"
#include "compiler/ir/verify_context.h"

namespace cinch::ir::rules {
namespace {

void require_float(const OpCheck& o, const Type& type) {
  o.require(type.dtype == kF32 || type.dtype == kF64, "the elements are not f32 or f64");
}

void require_sync(const OpCheck& o) {
  o.require(o.context.function.kind == FunctionKind::Sync && !o.context.is_init,
            "stands outside sync");
}

void require_joins(const OpCheck& o) {
  require_sync(o);
  const auto op = o.context.function.combiners[o.op.attrs.combiner.index()].op;
  o.require(op == ScalarOp::add || op == ScalarOp::min || op == ScalarOp::max,
            "joins by add, min or max only");
}

void require_by_rank(const OpCheck& o, const Type& type) {
  o.require_rank(type, 2, "the array by rank");
  o.require(sizes_agree(o.context.info, type.dims[0], o.exprs().world()),
            "the rows are not one for each rank");
}

void require_number(const OpCheck& o, std::size_t operand, const char* what) {
  o.require_type(o.in(operand), scalar_type(kU32), what);
}

// Whether the elements fit the result is checked when the ranks meet.
void require_counted(const OpCheck& o) {
  require_sync(o);
  o.require_rank(o.in(0), 1, "the operand");
  o.require_rank(o.out(), 1, "the result");
  o.require(o.out().dtype == o.in(0).dtype, "the result has another element type");
  o.require(!o.exprs().has_count(o.out().dims[0]),
            "the result's length is not known before launch");
  o.require_type(o.out(1), scalar_type(kU32), "the number of elements");
}

}  // namespace

// Selection.

void nonzero(const OpCheck& o) {
  o.require_limit(o.context.info.counts.size(), "count");
  o.require_rank(o.in(0), 1, "the mask");
  o.require(is_bool(o.in(0).dtype), "the mask is not bool");
  const HostExprId size =
      o.exprs().count(o.op.attrs.index, o.context.info.counts[o.op.attrs.index].bound);
  o.require_out(vector_type(kU32, size));
  o.require_type(o.out(1), scalar_type(kU32), "the count");
}

void top_k(const OpCheck& o) {
  o.require_line(o.in(0));
  o.require(o.op.attrs.axis != 0, "not along columns");
  o.require_out(o.in(0).rank == 1 ? vector_type(kU32, o.op.attrs.size)
                                  : matrix_type(kU32, o.in(0).dims[0], o.op.attrs.size));
}

void kth_largest(const OpCheck& o) {
  o.require_line(o.in(0));
  o.require(o.op.attrs.axis != 0, "not along columns");
  o.require_out(o.in(0).rank == 1
                    ? scalar_type(o.in(0).dtype)
                    : matrix_type(o.in(0).dtype, o.in(0).dims[0], o.exprs().const_int(1)));
}

void argsort(const OpCheck& o) {
  o.require_line(o.in(0));
  o.require_out(with_dtype(o.in(0), kU32));
}

// Stores.

void scatter(const OpCheck& o) {
  const Type &base = o.in(0), &index = o.in(1), &values = o.in(2);
  o.require_index(index);
  o.require(base.rank >= 1 && index.rank <= 1, "ranks do not go together");
  Type expected = scalar_type(base.dtype);
  if (index.rank == 1) expected.dims[expected.rank++] = index.dims[0];
  if (base.rank == 2) expected.dims[expected.rank++] = base.dims[1];
  o.require_type(values, expected, "the values");
  o.require_out(base);
}

void scatter_add(const OpCheck& o) {
  o.require_index(o.in(0));
  o.require_rank(o.in(0), 1, "the indices");
  o.require_type(o.in(1), with_dtype(o.in(0), o.in(1).dtype), "the values");
  o.require_rank(o.out(), 1, "the result");
  o.require(o.out().dtype == o.in(1).dtype, "the element types differ");
}

void scatter_reduce(const OpCheck& o) {
  const ScalarOp op = o.op.attrs.scalar_op;
  o.require(op == ScalarOp::min || op == ScalarOp::max, "joins by neither min nor max");
  o.require(!is_bool(o.in(1).dtype) && !is_narrow_float(o.in(1).dtype),
            "takes numbers of full width");
  scatter_add(o);
}

void histogram(const OpCheck& o) {
  o.require(o.in(0).dtype == kU32, "the values are not u32");
  if (o.num_in() > 1) o.require_type(o.in(1), with_dtype(o.in(0), kBool), "the mask");
  o.require_rank(o.out(), 1, "the result");
  o.require(o.out().dtype == kU32, "the result is not u32");
}

// Matrix.

void matmul(const OpCheck& o) {
  const DType dtype = o.in(0).dtype;
  o.require(is_float(dtype) ? !is_narrow_float(dtype) : is_int(dtype) && dtype.bits >= 32,
            "arithmetic is not done in the elements' type");
  o.require_rank(o.in(0), 2, "the left operand");
  o.require_rank(o.in(1), 2, "the right operand");
  o.require(o.in(0).dtype == o.in(1).dtype, "the element types differ");
  o.require(sizes_agree(o.context.info, o.in(0).dims[1], o.in(1).dims[0]),
            "the inner sizes differ");
  o.require_out(matrix_type(o.in(0).dtype, o.in(0).dims[0], o.in(1).dims[1]));
}

void orthonormalize(const OpCheck& o) {
  require_float(o, o.in(0));
  o.require_rank(o.in(0), 2, "the operand");
  o.require_out(o.in(0));
}

void hadamard(const OpCheck& o) {
  butterflies(o);
}

void butterflies(const OpCheck& o) {
  orthonormalize(o);
  const auto width = constant_size(o.exprs(), o.in(0).dims[1]);
  o.require(!width || (*width > 0 && (*width & (*width - 1)) == 0),
            "the row length is not a power of two");
}

void mark_largest(const OpCheck& o) {
  o.require(o.in(0).dtype == kU32, "the keys are not u32");
  o.require_rank(o.in(0), 2, "the keys");
  o.require(is_scalar(o.in(1)) && o.in(1).dtype == kU32, "the number is not a u32 scalar");
  o.require_out(o.in(0));
  const auto width = constant_size(o.exprs(), o.in(0).dims[1]);
  o.require(width && *width > 0 && *width <= kMostMarkedColumns,
            "rows of no constant length up to a tile");
}

void list_marked(const OpCheck& o) {
  o.require(o.in(0).dtype == kU32, "the marks are not u32");
  o.require_rank(o.in(0), 2, "the marks");
  o.require_out(matrix_type(kU32, o.in(0).dims[0], o.op.attrs.size));
}

// Checks.

void check(const OpCheck& o) {
  o.require(is_scalar(o.in(0)) && is_bool(o.in(0).dtype), "the condition is not a bool scalar");
}

void check_index(const OpCheck& o) {
  o.require_index(o.in(0));
}

void check_unique(const OpCheck& o) {
  o.require_index(o.in(0));
}

void check_host(const OpCheck& o) {
  o.require(o.exprs().type(o.op.attrs.size) == HostType::Bool, "the condition is not bool");
}

// Control.

void if_else(const OpCheck& o) {
  verify_control_types(o.context, o.op);
}

void for_loop(const OpCheck& o) {
  verify_control_types(o.context, o.op);
}

void while_loop(const OpCheck& o) {
  verify_control_types(o.context, o.op);
}

void yield(const OpCheck& /*o*/) {}

// Collectives.

void all_reduce(const OpCheck& o) {
  require_joins(o);
  o.require_out(o.in(0));
}

void all_gather(const OpCheck& o) {
  require_sync(o);
  o.require_rank(o.in(0), 1, "the operand");
  o.require_out(matrix_type(o.in(0).dtype, o.exprs().world(), o.in(0).dims[0]));
}

void all_to_all(const OpCheck& o) {
  require_sync(o);
  require_by_rank(o, o.in(0));
  o.require_out(o.in(0));
}

void reduce_scatter(const OpCheck& o) {
  require_joins(o);
  require_by_rank(o, o.in(0));
  o.require_out(vector_type(o.in(0).dtype, o.in(0).dims[1]));
}

void broadcast(const OpCheck& o) {
  require_sync(o);
  o.require_out(o.in(0));
}

void send_receive(const OpCheck& o) {
  require_sync(o);
  require_number(o, 1, "the receiver");
  o.require_out(o.in(0));
}

void all_gather_counted(const OpCheck& o) {
  require_counted(o);
  require_number(o, 1, "the length");
}

void send_receive_counted(const OpCheck& o) {
  require_counted(o);
  require_number(o, 1, "the receiver");
  require_number(o, 2, "the length");
}

}  // namespace cinch::ir::rules
