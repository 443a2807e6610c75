// Bodies of LaneArrays (access.h).
#include "compiler/lower/parts/access.h"
#include "runtime/core/check.h"

namespace cinch::lower {

// 0 … K - 1 along a row of the lanes: [1, K].
ValueId LaneArrays::columns(HostExprId size) {
  return emit().reshape(emit().iota(size), matrix_type(kU32, emit().one(), size));
}

Lowered LaneArrays::join(const Expr& e, const std::vector<Lowered>& parts) {
  if (cx().lanes.rank != 1) limitation("an array made in a lambda inside another");
  const HostExprId size = e.type.dims[0];
  const ValueId column = columns(size);
  ValueId joined;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Type& type = expr(e.args[i]).type;
    const HostExprId part_size = type.rank == 0 ? emit().one() : type.dims[0];
    const std::int64_t len = emit().exprs().const_value(part_size).as_int();
    if (len == 0) continue;
    ValueId part = emit().convert(parts[i].id, e.type.dtype);
    const ValueId first = emit().constant_int(kU32, begin);
    if (type.rank == 0) {
      part = aligned({part, parts[i].lanes}, e.type, parts[i].lanes);
    } else {
      const ValueId from = emit().map(ScalarOp::sub, emit().iota(size), first);
      const ValueId last = emit().constant_int(kU32, len - 1);
      const ValueId at = emit().map(ScalarOp::min, from, last);
      part = emit().along(full({part, parts[i].lanes}, type, 1),
                          full({at}, vector_type(kU32, size), 1), 1);
    }
    const bool is_first = !joined.is_valid();
    const ValueId is_before = is_first ? ValueId() : emit().map(ScalarOp::lt, column, first);
    joined = is_first ? part : emit().map(ScalarOp::select, is_before, joined, part);
    begin += len;
  }
  CINCH_CHECK(joined.is_valid(), "an array of no elements inside a lambda");
  return {emit().spread(joined, lifted(e.type, 1)), 1};
}

void LaneArrays::assign(const Stmt& s) {
  const Expr& index_expr = expr(s.expr2);
  const Type type = cx().checked.vars[s.var.index()].type;
  if (s.is_state || cx().lanes.rank != 1 || index_expr.type.rank != 0 || type.rank != 1) {
    limitation("assignment to several elements");
  }
  Lowered index = value(s.expr2);
  index.id = Checks(cx()).as_index(index.id);
  const Lowered stored = value(s.expr);
  if (!s.proved_in_bounds) {
    Checks(cx()).index(index, index_expr.type, type.dims[0],
                       located(s.span, "an index of '" + cx().checked.vars[s.var.index()].name +
                                           "' is out of range"));
  }
  Lowered& target = cx().vars[s.var.index()];
  const ValueId is_there = emit().map(ScalarOp::eq, columns(type.dims[0]),
                                      aligned(index, with_dtype(type, kU32), index.lanes));
  const ValueId converted = emit().convert(stored.id, type.dtype);
  const ValueId chosen =
      emit().map(ScalarOp::select, is_there, aligned({converted, stored.lanes}, type, stored.lanes),
                 aligned(target, type, 1));
  target = {emit().spread(chosen, lifted(type, 1)), 1};
}

}  // namespace cinch::lower
