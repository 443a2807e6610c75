// Bodies of ScansSorts (reductions.h).
#include <utility>

#include "compiler/lower/parts/reductions.h"

namespace cinch::lower {

using sema::BuiltinId;

Lowered ScanSortLowering::lower_scan(const Expr& e) {
  const Lowered x = value(e.args.at(0));
  const bool is_lifted = x.lanes != 0;
  ValueId array = is_lifted ? full(x, expr(e.args[0]).type, 1) : x.id;
  array = emit().convert(array, e.type.dtype);
  ir::Attrs attrs;
  attrs.axis = is_lifted ? std::int8_t{1} : axis_of(e, emit().type(array));
  attrs.exclusive = e.exclusive;
  ValueId init;
  if (e.builtin == BuiltinId::cumsum) {
    init = emit().constant_int(e.type.dtype, 0);
    attrs.combiner = emit().combiner(ScalarOp::add);
  } else {
    init = emit().convert(uniform(e.args.at(1)), e.type.dtype);
    attrs.combiner = LambdaLowering(cx()).lower_combiner(e.args.at(2), e.type.dtype);
  }
  const ValueId result = emit().emit(OpKind::scan, {array, init}, emit().type(array), attrs);
  return {result, x.lanes};
}

// Columns are sorted as rows of the transpose: targets sort only consecutive elements.
ValueId ScanSortLowering::order_of(ValueId keys, const ir::Attrs& attrs) {
  if (attrs.axis != 0) return emit().argsort(keys, attrs.descending, attrs.axis);
  return emit().transpose(emit().argsort(emit().transpose(keys), attrs.descending, 1));
}

// sort_by_key: values may differ between lanes although keys do not, and the other way round.
Lowered ScanSortLowering::sorted_values(const Expr& e, ValueId order, std::uint8_t lanes,
                                        int axis) {
  const Lowered values = value(e.args.at(1));
  const Type& type = expr(e.args[1]).type;
  if (lanes == 0 && values.lanes == 0) return {emit().along(values.id, order, axis)};
  const ValueId rows = full(values, type, 1);
  return {emit().along(rows, full({order, lanes}, with_dtype(type, kU32), 1), 1), 1};
}

Lowered ScanSortLowering::lower_sort(const Expr& e) {
  const Lowered key = value(e.args.at(0));
  const Type& key_type = expr(e.args[0]).type;
  const bool is_lifted = key.lanes != 0;
  const ValueId keys = is_lifted ? full(key, key_type, 1) : key.id;
  ir::Attrs attrs;
  attrs.axis = is_lifted ? std::int8_t{1} : axis_of(e, key_type);
  attrs.descending = e.descending;
  attrs.size = e.size;
  if (e.builtin == BuiltinId::top_k) {
    const Type type = is_lifted ? lifted(e.type, 1) : e.type;
    return {emit().emit(OpKind::top_k, {keys}, type, attrs), key.lanes};
  }
  if (e.builtin == BuiltinId::kth_largest) {
    const Type type =
        is_lifted ? matrix_type(e.type.dtype, cx().lanes.dims[0], emit().one()) : e.type;
    const ValueId found = emit().emit(OpKind::kth_largest, {keys}, type, attrs);
    if (!is_lifted) return {found};
    return {emit().reshape(found, vector_type(e.type.dtype, cx().lanes.dims[0])), key.lanes};
  }
  const ValueId order = order_of(keys, attrs);
  if (e.builtin == BuiltinId::argsort) return {order, key.lanes};
  if (e.builtin == BuiltinId::sort) return {emit().along(keys, order, attrs.axis), key.lanes};
  return sorted_values(e, order, key.lanes, attrs.axis);
}

}  // namespace cinch::lower
