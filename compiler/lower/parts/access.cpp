#include "compiler/lower/parts/access.h"

#include <algorithm>
#include <utility>

namespace cinch::lower {

std::string AccessLowering::describe(ExprId array) const {
  const Expr& e = expr(array);
  switch (e.kind) {
    case ExprKind::Var:
      return "'" + cx().checked.vars[e.var.index()].name + "'";
    case ExprKind::State:
      return "'" + cx().checked.info.states[e.index].name + "'";
    case ExprKind::Gradient:
      return "the gradient";
    case ExprKind::Builtin:
      return e.builtin == sema::BuiltinId::reshape ? describe(e.args[0]) : "an array";
    default:
      return "an array";
  }
}

// The message for an index that is out of range.
std::string AccessLowering::index_text(const Expr& e) const {
  const std::string array = describe(e.args[0]);
  if (!e.size) return "an index of " + array + " is out of range";
  const std::string columns = cx().out.info.exprs.print(e.size);
  constexpr std::size_t kLong = 20;
  const std::string figure = columns.size() < kLong ? " (of " + columns + ")" : "";
  return "a column number of " + array + " is out of range" + figure;
}

// The index of an inactive lane may be anything: it reads element 0, or a zero appended to an array
// that may be empty.
Lowered AccessLowering::guard_index(const Lowered& active, Lowered& base, const Type& base_type,
                                    Lowered index, const Type& index_type) {
  const HostExprId size = base_type.dims[0];
  ValueId other = emit().constant_int(kU32, 0);
  const HostExprPool& pool = emit().exprs();
  if (!pool.is_const(size) || pool.const_value(size).as_int() == 0) {
    if (base.lanes != 0 || base_type.rank != 1) limitation("indexing rows under a condition");
    const HostExprId longer = emit().exprs().add(size, emit().one());
    const ValueId zero =
        emit().spread(emit().constant_int(base_type.dtype, 0), vector_type(kF32, emit().one()));
    base.id = emit().emit(OpKind::concat, {base.id, zero}, vector_type(base_type.dtype, longer));
    other = host_scalar(size, kU32);
  }
  return select_lanes(active, index, {other}, with_dtype(index_type, kU32));
}

Lowered AccessLowering::lower_index_of_lanes(const Expr& e, Lowered base, Lowered index) {
  const Type base_type = expr(e.args[0]).type;
  const Type index_type = with_dtype(expr(e.args[1]).type, kU32);
  const std::uint8_t lanes = std::max(base.lanes, index.lanes);
  if (base.lanes != 0) {  // every element indexes its own row
    if (lanes != 1 || base_type.rank != 1) limitation("indexing a matrix");
    const ValueId rows = full(base, base_type, 1);
    ValueId columns = full(index, index_type, 1);
    if (index_type.rank == 0) {
      columns = emit().reshape(columns, matrix_type(kU32, cx().lanes.dims[0], emit().one()));
    }
    const ValueId found = emit().along(rows, columns, 1);
    return {emit().reshape(found, lifted(e.type, 1)), 1};
  }
  if (base_type.rank != 1 && emit().type(index.id).rank != 1) limitation("indexing a matrix");
  return {emit().gather(base.id, index.id), lanes};
}

Lowered AccessLowering::lower_index(const Expr& e) {
  Lowered base = value(e.args.at(0));
  Lowered index = value(e.args.at(1));
  const Expr& base_expr = expr(e.args[0]);
  const Expr& index_expr = expr(e.args[1]);
  index.id = Checks(cx()).as_index(index.id);
  if (!e.proved_in_bounds) {
    const HostExprId size = base_expr.type.dims[0];
    Checks(cx()).index(index, index_expr.type, size, located(e.span, index_text(e)));
    if (const auto& active = cx().lanes.active) {
      index = guard_index(*active, base, base_expr.type, index, index_expr.type);
    }
  }
  if (base.lanes == 0 && index.lanes == 0) {
    return {emit().gather(base.id, index.id)};
  }
  return lower_index_of_lanes(e, base, index);
}

// A slice at a place known on the host, of an array whose length only the device knows.
void AccessLowering::check_slice_end(const Expr& e, HostExprId size) {
  const HostExprId end = emit().exprs().add(e.size, e.type.dims[0]);
  const ValueId fits = emit().map(ScalarOp::le, host_scalar(end, kI64), host_scalar(size, kI64));
  Checks(cx()).all(fits, located(e.span, "a slice of " + describe(e.args[0]) + " is out of range"));
}

Lowered AccessLowering::lower_slice(const Expr& e) {
  const Lowered base = value(e.args.at(0));
  const Type& base_type = expr(e.args[0]).type;
  const bool is_host = e.size.is_valid() && !emit().exprs().has_count(e.size);
  if (is_host && !e.proved_in_bounds && emit().exprs().has_count(base_type.dims[0])) {
    check_slice_end(e, base_type.dims[0]);
  }
  if (base.lanes == 0 && is_host) {
    return {emit().slice(base.id, e.size, e.type.dims[0])};
  }
  const ValueId begin =
      Checks(cx()).as_index(e.size.is_valid() ? host_scalar(e.size, kI64) : uniform(e.args.at(1)));
  const HostExprId len = e.type.dims[0];
  if (!e.proved_in_bounds && !is_host) {
    const HostExprId starts =
        emit().exprs().add(emit().exprs().sub(base_type.dims[0], len), emit().one());
    Checks(cx()).index({begin}, scalar_type(kU32), starts,
                       located(e.span, "a slice of " + describe(e.args[0]) + " is out of range"));
  }
  const ValueId index = emit().map(ScalarOp::add, emit().iota(len), begin);
  if (base.lanes == 0) return {emit().gather(base.id, index)};
  const ValueId columns = full({index}, vector_type(kU32, len), 1);
  return {emit().along(full(base, base_type, 1), columns, 1), 1};
}

// target[index] = value is a scatter onto the target's old value.
void AccessLowering::lower_assign_indexed(const Stmt& s) {
  if (cx().lanes.rank != 0) return LaneArrays(cx()).assign(s);
  const Type type =
      s.is_state ? cx().out.info.states[s.index].type : cx().checked.vars[s.var.index()].type;
  const std::string name =
      s.is_state ? cx().out.info.states[s.index].name : cx().checked.vars[s.var.index()].name;
  ValueId index = Checks(cx()).as_index(uniform(s.expr2));
  ValueId stored = emit().convert(uniform(s.expr), type.dtype);
  if (!s.proved_in_bounds) {
    Checks(cx()).index({index}, emit().type(index), type.dims[0],
                       located(s.span, "an index of '" + name + "' is out of range"));
  }
  if (emit().type(index).rank == 0) index = emit().spread(index, vector_type(kU32, emit().one()));
  const Type index_type = emit().type(index);
  if (!s.proved_unique && !emit().is_one(index_type.dims[0])) {
    emit().check_unique(index, type.dims[0], located(s.span, "an index of '" + name + "' repeats"));
  }
  stored = emit().stored_at(stored, index, type);
  const ValueId base = s.is_state ? cx().states[s.index] : cx().vars[s.var.index()].id;
  const ValueId result = emit().emit(OpKind::scatter, {base, index, stored}, type);
  if (s.is_state) {
    cx().states[s.index] = result;
  } else {
    cx().vars[s.var.index()] = {result};
  }
}

}  // namespace cinch::lower
