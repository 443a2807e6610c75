// Bodies of builtins.h.
#include "compiler/lower/parts/builtins.h"

#include <utility>

#include "compiler/lower/draw_numbers.h"
#include "compiler/lower/parts/reductions.h"
#include "runtime/core/check.h"

namespace cinch::lower {

using sema::BuiltinGroup;
using sema::BuiltinId;

Lowered BuiltinLowering::lower_fill(const Expr& e) {
  const Lowered v = value(e.args.at(0));
  if (v.lanes != 0) return {full(v, e.type, v.lanes), v.lanes};
  return {emit().fit(v.id, e.type)};
}

Lowered BuiltinLowering::lower_len(const Expr& e) {
  return {host_scalar(expr(e.args.at(0)).type.dims[0], e.type.dtype)};
}

ir::Attrs BuiltinLowering::draw_attrs(const Expr& e) const {
  ir::Attrs attrs;
  attrs.draw = {e.stream.value_or(e.site), e.shared};
  return attrs;
}

// Draws after or inside a loop also count the draws of its iterations.
std::vector<ValueId> BuiltinLowering::draw_operands(const Expr& e, std::vector<ValueId> operands) {
  if (e.stream) return operands;
  const auto before = cx().draws_of_loops.find(draw_space(e));
  const auto around = cx().draws_of_rounds.find(draw_space(e));
  ValueId offset;
  if (before != cx().draws_of_loops.end()) offset = num_draws(before->second);
  if (around != cx().draws_of_rounds.end()) {
    const ValueId rounds = around->second;
    offset = offset.is_valid() ? emit().map(ScalarOp::add, rounds, offset) : rounds;
  }
  if (offset.is_valid()) operands.push_back(offset);
  return operands;
}

namespace {

OpKind draw_kind(BuiltinId builtin) {
  switch (builtin) {
    case BuiltinId::random:
      return OpKind::random;
    case BuiltinId::random_bits:
      return OpKind::random_bits;
    case BuiltinId::normal:
      return OpKind::normal;
    case BuiltinId::random_index:
      return OpKind::random_index;
    default:
      break;
  }
  CINCH_BUG("not a draw");
}

}  // namespace

// Inside a lambda every element draws an array of its own: one draw makes all of them, row by row.
Lowered BuiltinLowering::lower_random(const Expr& e) {
  ir::Attrs attrs = draw_attrs(e);
  attrs.size = e.size;
  const OpKind kind = draw_kind(e.builtin);
  if (cx().lanes.rank != 0 && kind == OpKind::random_index) limitation("random_index");
  const int lanes = cx().in_combiner ? 0 : cx().lanes.rank;
  const ValueId drawn = emit().emit(kind, draw_operands(e, {}), lifted(e.type, lanes), attrs);
  return {drawn, static_cast<std::uint8_t>(lanes)};
}

Lowered BuiltinLowering::lower_stochastic_round(const Expr& e) {
  Lowered x = value(e.args.at(0));
  const int lanes = cx().in_combiner ? 0 : cx().lanes.rank;
  x = {full({emit().convert(x.id, e.type.dtype), x.lanes}, e.type, lanes),
       static_cast<std::uint8_t>(lanes)};
  const Type type = with_dtype(emit().type(x.id), e.type.dtype);
  return {emit().emit(OpKind::stochastic_round, draw_operands(e, {x.id}), type, draw_attrs(e)),
          x.lanes};
}

// The exchange checks it, as all ranks have to know of one that does not exist. Saturated as an
// i32, so that its message shows the number.
ValueId BuiltinLowering::receiver(const Expr& e) {
  return emit().bitcast(emit().convert(uniform(e.args.at(1)), kI32), kU32);
}

// The received elements lie at the beginning of an array with room for the most; a selection of
// their places finds the count.
Lowered BuiltinLowering::lower_counted_collective(const Expr& e) {
  const bool gathers = e.builtin == BuiltinId::allgather;
  std::vector<ValueId> operands{uniform(e.args.at(0))};
  if (!gathers) operands.push_back(receiver(e));
  operands.push_back(host_scalar(emit().type(operands[0]).dims[0], kU32));
  const OpKind kind = gathers ? OpKind::all_gather_counted : OpKind::send_receive_counted;
  ir::Attrs attrs;
  if (!gathers) attrs.text = located(e.span, "`sendrecv`");
  const std::vector<ValueId> received = emit().emit_multi(
      kind, operands, {vector_type(e.type.dtype, e.size), scalar_type(kU32)}, attrs);
  const ValueId arrived = emit().map(ScalarOp::lt, emit().iota(e.size), received[1]);
  const ValueId index = MoveLowering(cx()).select_counted(arrived, e.index, e.type.dims[0], {});
  return {emit().gather(received[0], index)};
}

Lowered BuiltinLowering::lower_collective(const Expr& e) {
  if (e.size) return lower_counted_collective(e);
  ir::Attrs attrs;
  const ValueId x = uniform(e.args.at(0));
  switch (e.builtin) {
    case BuiltinId::allreduce:
      attrs.mean = e.is_mean;
      attrs.combiner = emit().combiner(e.scalar_op);
      return {emit().emit(OpKind::all_reduce, {x}, e.type, attrs)};
    case BuiltinId::allgather:
      return {emit().emit(OpKind::all_gather, {x}, e.type)};
    case BuiltinId::all_to_all:
      return {emit().emit(OpKind::all_to_all, {x}, e.type)};
    case BuiltinId::reduce_scatter:
      attrs.combiner = emit().combiner(ScalarOp::add);
      return {emit().emit(OpKind::reduce_scatter, {x}, e.type, attrs)};
    case BuiltinId::broadcast:
      attrs.index = e.index;
      return {emit().emit(OpKind::broadcast, {x}, e.type, attrs)};
    case BuiltinId::sendrecv:
      return {emit().send_receive(x, receiver(e), located(e.span, "`sendrecv`"))};
    default:
      break;
  }
  CINCH_BUG("not a collective");
}

Lowered BuiltinLowering::lower(const Expr& e) {
  switch (sema::builtin_info(e.builtin).group) {
    case BuiltinGroup::Map:
      if (e.builtin == BuiltinId::map) return LambdaLowering(cx()).lower_map(e);
      return e.builtin == BuiltinId::fill ? lower_fill(e) : lower_len(e);
    case BuiltinGroup::Reduce:
      return ReduceLowering(cx()).lower(e);
    case BuiltinGroup::Scan:
      return ScanSortLowering(cx()).lower_scan(e);
    case BuiltinGroup::Sort:
      return ScanSortLowering(cx()).lower_sort(e);
    case BuiltinGroup::Filter:
    case BuiltinGroup::Pack:
    case BuiltinGroup::Move:
    case BuiltinGroup::Matrix:
      return MoveLowering(cx()).lower(e);
    case BuiltinGroup::Random:
      return e.builtin == BuiltinId::stochastic_round ? lower_stochastic_round(e) : lower_random(e);
    case BuiltinGroup::Collective:
      return lower_collective(e);
  }
  CINCH_BUG("an operator of no group");
}

}  // namespace cinch::lower
