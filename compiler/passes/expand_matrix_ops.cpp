// expand_matrix_ops: orthonormalize as a loop over columns, hadamard as butterfly stages.
//
//   before:  %1 = orthonormalize %0
//   after:   %1 = for_loop %0 {begin=0, end=cols} (%i, %m) { column i made of length 1, and taken
//                 out of the later columns }
//
//   before:  %1 = hadamard %0
//   after:   for each distance 1, 2, 4 …: %p = gather_along %x, (column ^ distance)
//            %x' = select((column & distance) == 0, %x + %p, %p - %x); at last %x * 1/sqrt(length)
#include "compiler/ir/scalar_eval.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite_region.h"

namespace cinch::passes {
namespace {

using ir::ValueId;

// [1, cols]: 0, 1, 2 …
ValueId column_numbers(ir::Builder& b, HostExprId cols) {
  return b.reshape(b.iota(cols), ir::matrix_type(kU32, b.exprs().const_int(1), cols));
}

// One turn of the modified Gram-Schmidt process: column `i` is normalised, then taken out of those
// behind it.
ValueId normalise_column(ir::Builder& b, ValueId m, ValueId i) {
  const ir::Type type = b.type(m);
  const ir::Type column = ir::matrix_type(kU32, type.dims[0], b.exprs().const_int(1));
  const ValueId v = b.gather_along(m, b.fill(i, column), 1);
  const ValueId square = b.reduce(ScalarOp::add, b.map(ScalarOp::mul, v, v), 0);
  const ValueId q = b.map(ScalarOp::divide_or_zero, v, b.map(ScalarOp::sqrt, square));
  const ValueId share = b.reduce(ScalarOp::add, b.map(ScalarOp::mul, q, m), 0);
  const ValueId rest = b.map(ScalarOp::sub, m, b.map(ScalarOp::mul, share, q));
  const ValueId number = column_numbers(b, type.dims[1]);
  const ValueId later = b.select(b.map(ScalarOp::gt, number, i), rest, m);
  return b.select(b.map(ScalarOp::eq, number, i), q, later);
}

ValueId orthonormalize(ir::Builder& b, ValueId x) {
  const HostExprId cols = b.type(x).dims[1];
  return b
      .for_loop(b.exprs().const_int(0), cols, {x},
                [&](ValueId i, std::span<const ValueId> carried) {
                  return ir::ValueIds{normalise_column(b, carried[0], b.convert(i, kU32))};
                })
      .front();
}

// Partners stand `distance` (a u32 scalar, a power of two) apart.
ValueId butterfly(ir::Builder& b, ValueId x, ValueId distance) {
  const ir::Type type = b.type(x);
  const ValueId number = column_numbers(b, type.dims[1]);
  const ValueId partner = b.fill(b.map(ScalarOp::bit_xor, number, distance), type);
  const ValueId p = b.gather_along(x, partner, 1);
  const ValueId bit = b.map(ScalarOp::bit_and, number, distance);
  const ValueId is_left = b.map(ScalarOp::eq, bit, b.constant_int(kU32, 0));
  return b.select(is_left, b.map(ScalarOp::add, x, p), b.map(ScalarOp::sub, p, x));
}

ValueId constant_stages(ir::Builder& b, ValueId x, std::int64_t length) {
  for (std::int64_t distance = 1; distance < length; distance *= 2) {
    x = butterfly(b, x, b.constant_int(kU32, distance));
  }
  return x;
}

// As many stages as the length has binary digits behind its first.
ValueId looped_stages(ir::Builder& b, ValueId x, HostExprId length) {
  HostExprPool& exprs = b.exprs();
  const HostExprId log = exprs.make(HostOp::Log2, exprs.cast(length, HostType::F64));
  const HostExprId stages = exprs.cast(exprs.make(HostOp::Round, log), HostType::Int);
  return b
      .for_loop(exprs.const_int(0), stages, {x},
                [&](ValueId i, std::span<const ValueId> carried) {
                  const ValueId one = b.constant_int(kU32, 1);
                  const ValueId distance = b.map(ScalarOp::shl, one, b.convert(i, kU32));
                  return ir::ValueIds{butterfly(b, carried[0], distance)};
                })
      .front();
}

ValueId hadamard(ir::Builder& b, ValueId x) {
  const HostExprId length = b.type(x).dims[1];
  const auto constant = ir::constant_size(b.exprs(), length);
  const ValueId turned = constant ? constant_stages(b, x, *constant) : looped_stages(b, x, length);
  const ValueId scale = b.map(ScalarOp::rsqrt, b.host_size(length, b.dtype(x)));
  return b.map(ScalarOp::mul, turned, scale);
}

}  // namespace

void expand_matrix_ops(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, [](ir::Builder& b, ir::OpId id) -> std::optional<ir::ValueIds> {
    const ir::Op op = b.function().ops[id.index()];
    if (op.kind == ir::OpKind::orthonormalize) {
      return ir::ValueIds{orthonormalize(b, op.operands[0])};
    }
    if (op.kind != ir::OpKind::hadamard) return std::nullopt;
    return ir::ValueIds{hadamard(b, op.operands[0])};
  });
}

}  // namespace cinch::passes
