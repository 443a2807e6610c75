// expand_scatter_reduce: computes minima and maxima at places as maxima of unsigned keys, which
// devices can join in any order.
//
//   before:  %1: [f32; m] = scatter_reduce.min %at, %v
//   after:   %2 = … %v                                keys of the values, turned over for min
//            %3 = scatter_reduce.max %at, %2          of u32 or u64, from 0
//            %1 = select %3 == 0, identity, … %3      back to values
//
// No float that is a number has the key 0, so NaN, which min and max ignore, gets it. For integers
// the identity has it.

#include "compiler/ir/rewriter.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/selection.h"

namespace cinch::passes {
namespace {

using ir::ValueId;

// Keys whose maximum is wanted.
ValueId in_order_of(ir::Builder& b, ScalarOp op, ValueId keys) {
  return op == ScalarOp::min ? b.map(ScalarOp::bit_not, keys) : keys;
}

ValueId expand(ir::Builder& b, const ir::Op& op) {
  const ScalarOp joins = op.attrs.scalar_op;
  const ValueId values = op.operands[1];
  const DType dtype = b.dtype(values);
  const SelectionKeys keys = make_keys(b, values, ZeroOrder::NegativeBelow);
  const ValueId none = b.constant_int(keys.key_type, 0);
  ValueId sent = in_order_of(b, joins, keys.keys);
  if (is_float(dtype)) sent = b.select(b.map(ScalarOp::isnan, values), none, sent);
  const HostExprId size = ir::type_of(b.function(), op.results[0]).dims[0];
  const ValueId found =
      b.scatter_reduce(ScalarOp::max, op.operands[0], sent, size, op.attrs.in_rows);
  const ValueId value = value_of_key(b, keys, in_order_of(b, joins, found), dtype);
  return b.select(b.map(ScalarOp::eq, found, none), b.identity(joins, dtype), value);
}

}  // namespace

void expand_scatter_reduce(ir::Program& program, PassContext& context) {
  rewrite_all(program, context,
              [&](ir::Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
                if (op.kind != ir::OpKind::scatter_reduce) return std::nullopt;
                const DType dtype = b.dtype(op.results[0]);
                const bool is_of_keys =
                    op.attrs.scalar_op == ScalarOp::max && (dtype == kU32 || dtype == kU64);
                if (is_of_keys) return std::nullopt;
                return ir::ValueIds{expand(b, op)};
              });
}

}  // namespace cinch::passes
