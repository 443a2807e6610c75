// Operators that select, pack or move elements, and those on matrices.
#include <utility>

#include "compiler/lower/body_lowering.h"
#include "runtime/core/check.h"

namespace cinch::lower {

using sema::BuiltinId;

Lowered BodyLowering::lower_move(const Expr& e) {
  switch (e.builtin) {
    case BuiltinId::filter:
      return lower_filter(e);
    case BuiltinId::nonzero:
      return {nonzero(e, uniform(e.args.at(0)), e.type.dims[0])};
    case BuiltinId::pack:
    case BuiltinId::unpack:
      return lower_pack(e);
    case BuiltinId::concat:
      return e.args.size() == 1 ? value(e.args[0]) : lower_plain(e, OpKind::concat);
    case BuiltinId::slice:
      return lower_slice(e);
    case BuiltinId::scatter:
      return lower_scatter(e);
    case BuiltinId::scatter_add:
      return lower_scatter_add(e);
    case BuiltinId::reshape:
      return lower_reshape(e);
    case BuiltinId::transpose:
      return lower_plain(e, OpKind::transpose);
    case BuiltinId::chunk:
      return lower_plain(e, OpKind::chunk);
    case BuiltinId::unchunk:
      return lower_plain(e, OpKind::unchunk);
    case BuiltinId::iota:
      return {emit_.convert(emit_.iota(e.type.dims[0]), e.type.dtype)};
    case BuiltinId::histogram:
      return {emit_.emit(OpKind::histogram, {as_index(uniform(e.args.at(0)))}, e.type)};
    case BuiltinId::matmul:
      return lower_plain(e, OpKind::matmul);
    case BuiltinId::orthonormalize:
      return lower_plain(e, OpKind::orthonormalize);
    case BuiltinId::hadamard: {
      const Lowered x = value(e.args.at(0));
      const ValueId rows = full(x, e.type, x.lanes);
      return {emit_.emit(OpKind::hadamard, {rows}, lifted(e.type, x.lanes)), x.lanes};
    }
    default:
      break;
  }
  CINCH_BUG("an operator without a lowering");
}

// Inside a lambda [K] and [1, K] have one form, so that only changes between them are possible
// there.
Lowered BodyLowering::lower_reshape(const Expr& e) {
  const Lowered x = value(e.args.at(0));
  if (x.lanes == 0) return {emit_.emit(OpKind::reshape, {x.id}, e.type)};
  return {full(x, e.type, x.lanes), x.lanes};
}

ValueId BodyLowering::nonzero(const Expr& e, ValueId mask, HostExprId len) {
  ir::Attrs attrs;
  attrs.index = e.index;
  attrs.has_limit = e.size.is_valid();
  attrs.size = e.size;
  const std::vector<ValueId> found =
      emit_.emit_multi(OpKind::nonzero, {mask}, {vector_type(kU32, len), scalar_type(kU32)}, attrs);
  counts_[e.index] = found[1];
  return found[0];
}

Lowered BodyLowering::lower_filter(const Expr& e) {
  const ValueId x = uniform(e.args.at(0));
  const ValueId index = nonzero(e, uniform(e.args.at(1)), e.type.dims[0]);
  return {emit_.gather(x, index)};
}

Lowered BodyLowering::lower_pack(const Expr& e) {
  ir::Attrs attrs;
  const bool is_pack = e.builtin == BuiltinId::pack;
  attrs.bits = e.type.dtype.bits;
  if (is_pack) {
    CINCH_CHECK(emit_.exprs().is_const(e.size), "the width of pack is a constant");
    attrs.bits = static_cast<std::uint64_t>(emit_.exprs().const_value(e.size).as_int());
  }
  const OpKind kind = is_pack ? OpKind::pack : OpKind::unpack;
  return {emit_.emit(kind, {uniform(e.args.at(0))}, e.type, attrs)};
}

ValueId BodyLowering::scatter_index(const Expr& e, bool must_be_unique) {
  const ValueId index = as_index(uniform(e.args.at(1)));
  const HostExprId size = e.type.dims[0];
  if (!e.proved_in_bounds) {
    check_index({index}, emit_.type(index), size,
                located(e.span, "an index of scatter is out of range"));
  }
  if (must_be_unique && !e.proved_unique) {
    emit_.check_unique(index, size, located(e.span, "an index of scatter repeats"));
  }
  return index;
}

Lowered BodyLowering::lower_scatter(const Expr& e) {
  const ValueId values = uniform(e.args.at(0));
  const ValueId index = scatter_index(e, true);
  const ValueId zeros = emit_.spread(emit_.constant_int(e.type.dtype, 0), e.type);
  return {emit_.emit(OpKind::scatter, {zeros, index, stored_at(values, index, e.type)}, e.type)};
}

Lowered BodyLowering::lower_scatter_add(const Expr& e) {
  const ValueId values = uniform(e.args.at(0));
  const ValueId index = scatter_index(e, false);
  return {emit_.emit(OpKind::scatter_add, {index, stored_at(values, index, e.type)}, e.type)};
}

// The values in the shape that the indices and the target give: one element, or one row, per index.
ValueId BodyLowering::stored_at(ValueId values, ValueId index, const Type& target) {
  const HostExprId len = emit_.type(index).dims[0];
  const Type type = target.rank == 1 ? vector_type(target.dtype, len)
                                     : matrix_type(target.dtype, len, target.dims[1]);
  return emit_.fit(values, type);
}

}  // namespace cinch::lower
