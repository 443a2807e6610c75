// Collectives. Ranks of a group exchange rows; what they add up, and what travels in a narrow type,
// is added in rank order by the rank that owns a part, and then goes to all.
#include "compiler/lower/emitter.h"
#include "compiler/lower/parts/body_lowering.h"
#include "runtime/core/check.h"

namespace cinch::lower {
using sema::BuiltinId;

// The exchange checks it, as all ranks have to know of one that does not exist. Saturated as an
// i32, so that its message shows the number.
ValueId BodyLowering::named_rank(const Expr& e) {
  return emit_.bitcast(emit_.convert(uniform(e.args.at(1)), kI32), kU32);
}

// The received elements lie at the beginning of an array with room for the most; a selection of
// their places finds the count.
Lowered BodyLowering::lower_counted_collective(const Expr& e) {
  const bool gathers = e.builtin == BuiltinId::allgather;
  std::vector<ValueId> operands{uniform(e.args.at(0))};
  if (!gathers) operands.push_back(named_rank(e));
  operands.push_back(host_scalar(emit_.type(operands[0]).dims[0], kU32));
  const OpKind kind = gathers ? OpKind::all_gather_counted : OpKind::send_receive_counted;
  ir::Attrs attrs;
  if (!gathers) attrs.text = located(e.span, "`sendrecv`");
  const std::vector<ValueId> received = emit_.emit_multi(
      kind, operands, {vector_type(e.type.dtype, e.size), scalar_type(kU32)}, attrs);
  const ValueId arrived = emit_.map(ScalarOp::lt, emit_.iota(e.size), received[1]);
  const ValueId index = select_counted(arrived, e.index, e.type.dims[0], {});
  return {emit_.gather(received[0], index)};
}

ValueId BodyLowering::exchange_rows(const Expr& e, ValueId rows) {
  return emit_.all_to_all(rows, e.group, e.stride);
}

// Row 0, then row 1 joined to it, and so on. Narrow floats are joined in f32, without rounding in
// between.
ValueId BodyLowering::join_rows(ValueId rows, ScalarOp op) {
  const Type type = emit_.type(rows);
  const DType joined = is_narrow_float(type.dtype) ? kF32 : type.dtype;
  const auto row = [&](ValueId i) { return emit_.convert(emit_.gather(rows, i), joined); };
  const ValueId first = row(emit_.constant_int(kU32, 0));
  const auto join = [&](ValueId i, std::span<const ValueId> so_far) {
    return ir::ValueIds{emit_.map(op, so_far[0], row(emit_.convert(i, kU32)))};
  };
  return emit_.for_loop(emit_.one(), type.dims[0], {first}, join)[0];
}

// [size, m]: the elements, and zeros behind them.
ValueId BodyLowering::parts_of_ranks(ValueId x, HostExprId size) {
  HostExprPool& pool = emit_.exprs();
  const Type type = emit_.type(x);
  const HostExprId all = ir::element_count(pool, type);
  const HostExprId width = pool.ceil_div(all, size), padded = pool.mul(size, width);
  const ValueId flat = type.rank == 0 ? emit_.spread(x, vector_type(type.dtype, emit_.one()))
                                      : emit_.reshape(x, vector_type(type.dtype, all));
  const ValueId zeros = emit_.spread(emit_.constant_int(type.dtype, 0),
                                     vector_type(type.dtype, pool.sub(padded, all)));
  const ValueId whole = emit_.emit(OpKind::concat, {flat, zeros}, vector_type(type.dtype, padded));
  return emit_.reshape(whole, matrix_type(type.dtype, size, width), true);
}

// Every rank adds up one part of the array, and gives its sum to all.
ValueId BodyLowering::reduce_in_parts(const Expr& e, ValueId x) {
  HostExprPool& pool = emit_.exprs();
  const Type type = emit_.type(x);
  const HostExprId size = e.group.is_valid() ? e.group : pool.world();
  const DType travels = e.travels_in.value_or(type.dtype);
  const ValueId parts = emit_.convert(parts_of_ranks(x, size), travels);
  ValueId own = join_rows(exchange_rows(e, parts), e.scalar_op);
  if (e.is_mean) own = emit_.map(ScalarOp::div, own, host_scalar(size, emit_.dtype(own)));
  const ValueId all = gather_rows(e, emit_.convert(own, travels));
  const HostExprId padded = ir::element_count(pool, emit_.type(all));
  const ValueId flat = emit_.reshape(all, vector_type(travels, padded), true);
  if (type.rank == 0) return emit_.gather(flat, emit_.constant_int(kU32, 0));
  const ValueId begin = emit_.slice(flat, pool.const_int(0), ir::element_count(pool, type));
  return emit_.reshape(begin, with_dtype(type, travels), true);
}

// The vectors of all ranks, or of those of the group, as rows.
ValueId BodyLowering::gather_rows(const Expr& e, ValueId x) {
  const Type type = emit_.type(x);
  if (!e.group.is_valid()) return emit_.all_gather(x);
  const ValueId row = emit_.reshape(x, matrix_type(type.dtype, emit_.one(), type.dims[0]));
  return exchange_rows(e, emit_.spread(row, matrix_type(type.dtype, e.group, type.dims[0])));
}

Lowered BodyLowering::lower_collective(const Expr& e) {
  if (e.size) return lower_counted_collective(e);
  ir::Attrs attrs;
  const ValueId x = uniform(e.args.at(0));
  const bool is_in_parts = e.group.is_valid() || e.travels_in;
  switch (e.builtin) {
    case BuiltinId::allreduce:
      if (is_in_parts) return {reduce_in_parts(e, x)};
      attrs.mean = e.is_mean;
      attrs.combiner = emit_.combiner(e.scalar_op);
      return {emit_.emit(OpKind::all_reduce, {x}, e.type, attrs)};
    case BuiltinId::allgather:
      return {gather_rows(e, x)};
    case BuiltinId::all_to_all:
      return {exchange_rows(e, x)};
    case BuiltinId::reduce_scatter:
      if (is_in_parts) {
        const DType travels = e.travels_in.value_or(emit_.dtype(x));
        return {join_rows(exchange_rows(e, emit_.convert(x, travels)), ScalarOp::add)};
      }
      attrs.combiner = emit_.combiner(ScalarOp::add);
      return {emit_.emit(OpKind::reduce_scatter, {x}, e.type, attrs)};
    case BuiltinId::broadcast:
      if (e.args.size() > 1) {
        attrs.text = located(e.span, "`broadcast`");
        return {emit_.emit(OpKind::broadcast_from, {x, named_rank(e)}, e.type, attrs)};
      }
      attrs.index = e.index;
      return {emit_.emit(OpKind::broadcast, {x}, e.type, attrs)};
    case BuiltinId::sendrecv:
      return {emit_.send_receive(x, named_rank(e), located(e.span, "`sendrecv`"))};
    default:
      break;
  }
  CINCH_BUG("not a collective");
}

}  // namespace cinch::lower
