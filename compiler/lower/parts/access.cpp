#include "compiler/lower/parts/body_lowering.h"

#include <algorithm>
#include <utility>

namespace cinch::lower {

std::string BodyLowering::describe(ExprId array) const {
  const Expr& e = expr(array);
  switch (e.kind) {
    case ExprKind::Var:
      return "'" + checked_.vars[e.var.index()].name + "'";
    case ExprKind::State:
      return "'" + checked_.info.states[e.index].name + "'";
    case ExprKind::Gradient:
      return "the gradient";
    case ExprKind::Builtin:
      return e.builtin == sema::BuiltinId::reshape ? describe(e.args[0]) : "an array";
    default:
      return "an array";
  }
}

// The message for an index that is out of range.
std::string BodyLowering::index_text(const Expr& e) const {
  const std::string array = describe(e.args[0]);
  if (!e.size) return "an index of " + array + " is out of range";
  const std::string columns = out_.info.exprs->print(e.size);
  constexpr std::size_t kLong = 20;
  const std::string figure = columns.size() < kLong ? " (of " + columns + ")" : "";
  return "a column number of " + array + " is out of range" + figure;
}

// The index of an inactive lane may be anything: it reads element 0, or a zero appended to an array
// that may be empty.
Lowered BodyLowering::guard_index(const Lowered& active, Lowered& base, const Type& base_type,
                                  Lowered index, const Type& index_type) {
  const HostExprId size = base_type.dims[0];
  ValueId other = emit_.constant_int(kU32, 0);
  const HostExprPool& pool = emit_.exprs();
  if (!pool.is_const(size) || pool.const_value(size).as_int() == 0) {
    if (base.lanes != 0 || base_type.rank != 1) limitation("indexing rows under a condition");
    const HostExprId longer = emit_.exprs().add(size, emit_.one());
    const ValueId zero =
        emit_.spread(emit_.constant_int(base_type.dtype, 0), vector_type(kF32, emit_.one()));
    base.id = emit_.emit(OpKind::concat, {base.id, zero}, vector_type(base_type.dtype, longer));
    other = host_scalar(size, kU32);
  }
  return select_lanes(active, index, {other}, with_dtype(index_type, kU32));
}

Lowered BodyLowering::lower_index_of_lanes(const Expr& e, Lowered base, Lowered index) {
  const Type base_type = expr(e.args[0]).type;
  const Type index_type = with_dtype(expr(e.args[1]).type, kU32);
  const std::uint8_t lanes = std::max(base.lanes, index.lanes);
  if (base.lanes != 0) {  // every element indexes its own row
    if (lanes != 1 || base_type.rank != 1) limitation("indexing a matrix");
    const ValueId rows = full(base, base_type, 1);
    ValueId columns = full(index, index_type, 1);
    if (index_type.rank == 0) {
      columns = emit_.reshape(columns, matrix_type(kU32, lanes_.dims[0], emit_.one()));
    }
    const ValueId found = emit_.along(rows, columns, 1);
    return {emit_.reshape(found, lifted(e.type, 1)), 1};
  }
  if (base_type.rank != 1 && emit_.type(index.id).rank != 1) limitation("indexing a matrix");
  return {emit_.gather(base.id, index.id), lanes};
}

Lowered BodyLowering::lower_index(const Expr& e) {
  Lowered base = value(e.args.at(0));
  Lowered index = value(e.args.at(1));
  const Expr& base_expr = expr(e.args[0]);
  const Expr& index_expr = expr(e.args[1]);
  index.id = as_index(index.id);
  if (!e.proved_in_bounds) {
    const HostExprId size = base_expr.type.dims[0];
    check_index(index, index_expr.type, size, located(e.span, index_text(e)));
    if (const auto& active = lanes_.active) {
      index = guard_index(*active, base, base_expr.type, index, index_expr.type);
    }
  }
  if (base.lanes == 0 && index.lanes == 0) {
    return {emit_.gather(base.id, index.id)};
  }
  return lower_index_of_lanes(e, base, index);
}

// A slice at a place known on the host, of an array whose length only the device knows.
void BodyLowering::check_slice_end(const Expr& e, HostExprId size) {
  const HostExprId end = emit_.exprs().add(e.size, e.type.dims[0]);
  const ValueId fits = emit_.map(ScalarOp::le, host_scalar(end, kI64), host_scalar(size, kI64));
  check_all(fits, located(e.span, "a slice of " + describe(e.args[0]) + " is out of range"));
}

Lowered BodyLowering::lower_slice(const Expr& e) {
  const Lowered base = value(e.args.at(0));
  const Type& base_type = expr(e.args[0]).type;
  const bool is_host = e.size.is_valid() && !emit_.exprs().has_count(e.size);
  if (is_host && !e.proved_in_bounds && emit_.exprs().has_count(base_type.dims[0])) {
    check_slice_end(e, base_type.dims[0]);
  }
  if (base.lanes == 0 && is_host) {
    return {emit_.slice(base.id, e.size, e.type.dims[0])};
  }
  const ValueId begin =
      as_index(e.size.is_valid() ? host_scalar(e.size, kI64) : uniform(e.args.at(1)));
  const HostExprId len = e.type.dims[0];
  if (!e.proved_in_bounds && !is_host) {
    const HostExprId starts =
        emit_.exprs().add(emit_.exprs().sub(base_type.dims[0], len), emit_.one());
    check_index({begin}, scalar_type(kU32), starts,
                located(e.span, "a slice of " + describe(e.args[0]) + " is out of range"));
  }
  const ValueId index = emit_.map(ScalarOp::add, emit_.iota(len), begin);
  if (base.lanes == 0) return {emit_.gather(base.id, index)};
  const ValueId columns = full({index}, vector_type(kU32, len), 1);
  return {emit_.along(full(base, base_type, 1), columns, 1), 1};
}

// target[index] = value is a scatter onto the target's old value.
void BodyLowering::lower_assign_indexed(const Stmt& s) {
  if (lanes_.rank != 0) return assign_lanes(s);
  const Type whole =
      s.is_state ? out_.info.states[s.index].type : checked_.vars[s.var.index()].type;
  Type type = whole;
  if (s.is_by_element) {
    type = vector_type(whole.dtype, emit_.exprs().mul(whole.dims[0], whole.dims[1]));
  }
  const std::string name =
      s.is_state ? out_.info.states[s.index].name : checked_.vars[s.var.index()].name;
  ValueId index = as_index(uniform(s.expr2));
  ValueId stored = emit_.convert(uniform(s.expr), type.dtype);
  if (!s.proved_in_bounds) {
    check_index({index}, emit_.type(index), type.dims[0],
                located(s.span, "an index of '" + name + "' is out of range"));
  }
  if (emit_.type(index).rank == 0) index = emit_.spread(index, vector_type(kU32, emit_.one()));
  const Type index_type = emit_.type(index);
  if (!s.proved_unique && !emit_.is_one(index_type.dims[0])) {
    emit_.check_unique(index, type.dims[0], located(s.span, "an index of '" + name + "' repeats"));
  }
  stored = emit_.stored_at(stored, index, type);
  const ValueId base = s.is_state ? states_[s.index] : vars_[s.var.index()].id;
  const ValueId changed =
      emit_.emit(OpKind::scatter, {emit_.reshape(base, type), index, stored}, type);
  const ValueId result = emit_.reshape(changed, whole);
  if (s.is_state) {
    states_[s.index] = result;
  } else {
    vars_[s.var.index()] = {result};
  }
}

}  // namespace cinch::lower
