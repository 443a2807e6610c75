// pack_exchanges: sends bool and integers of fewer than 8 bits in as many bits as they have.
//
//   before:  %1 = all_gather %x              x: [u4; n]
//   after:   %p = pack %x {bits=4}           [u8; ceil_div(4 * n, 8)]
//            %g = all_gather %p              each rank's part begins with a byte
//            %u = unpack %g {bits=4}         for each rank 8 / 4 elements per byte
//            %1 = the first n of each row of %u
//
// For all_to_all, each row is first filled up to whole bytes. The others give an
// array of the same size, so that nothing is filled up. Sums, minima and maxima stay (see
// pack_rank_sums), and so do the collectives of counts, whose lengths are those of elements.
#include <numeric>

#include "compiler/ir/types.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {
namespace {

using ir::Builder;
using ir::OpKind;
using ir::ValueId;

constexpr int kByteBits = 8;
constexpr DType kBit{DTypeKind::UInt, 1};

// The fewest elements that fill whole bytes.
int group_size(int bits) {
  return kByteBits / std::gcd(bits, kByteBits);
}

HostExprId round_up(HostExprPool& exprs, HostExprId size, int bits) {
  const HostExprId group = exprs.const_int(group_size(bits));
  return exprs.mul(exprs.ceil_div(size, group), group);
}

// Repeats the last column until a row of elements takes whole bytes.
ValueId fill_rows(Builder& b, ValueId x, int bits) {
  HostExprPool& exprs = b.exprs();
  const ir::Type type = b.type(x);
  const HostExprId width = type.dims[1], full = round_up(exprs, width, bits);
  const HostExprId one = exprs.const_int(1);
  const HostExprId last = exprs.sub(exprs.max(width, one), one);
  const ValueId column = b.map(ScalarOp::min, b.iota(full), b.host_size(last, kU32));
  const ValueId row = b.reshape(column, ir::matrix_type(kU32, one, full));
  return b.gather_along(x, b.fill(row, ir::matrix_type(kU32, type.dims[0], full)), 1);
}

// All elements, one row after the other.
ValueId pack_all(Builder& b, ValueId x) {
  const ir::Type type = b.type(x);
  const ir::Type flat = ir::vector_type(type.dtype, ir::element_count(b.exprs(), type));
  const ValueId row = b.reshape(x, flat, true);
  const ValueId codes = is_bool(type.dtype) ? b.convert(row, kBit) : row;
  return b.pack(codes, type.dtype.bits);
}

ValueId unpack_as(Builder& b, ValueId bytes, DType dtype, HostExprId size) {
  const ValueId codes = b.unpack(bytes, dtype.bits, size);
  if (is_bool(dtype)) return b.convert(codes, dtype);
  return is_signed_int(dtype) ? b.bitcast(codes, dtype) : codes;
}

// Rows of `width` elements from rows of whole bytes.
ValueId unpack_rows(Builder& b, ValueId rows, DType dtype, HostExprId width) {
  HostExprPool& exprs = b.exprs();
  const ir::Type packed = b.type(rows);
  const HostExprId num_bytes = ir::element_count(exprs, packed);
  const HostExprId full = round_up(exprs, width, dtype.bits);
  const ValueId bytes = b.reshape(rows, ir::vector_type(kU8, num_bytes), true);
  const HostExprId num_ranks = packed.dims[0];
  const ValueId all = unpack_as(b, bytes, dtype, exprs.mul(num_ranks, full));
  const ValueId by_rank = b.reshape(all, ir::matrix_type(dtype, num_ranks, full), true);
  // The first columns. Only places change, so that no element is moved.
  return b.transpose(b.slice(b.transpose(by_rank), exprs.const_int(0), width));
}

ValueId gather_packed(Builder& b, ValueId x) {
  const ir::Type type = b.type(x);
  const int bits = type.dtype.bits;
  // With 1, 2 or 4 bits a last byte is filled up by itself.
  const bool fills_bytes = kByteBits % bits == 0;
  const ValueId whole = fills_bytes ? x : b.chunk(x, b.exprs().const_int(group_size(bits)));
  const ValueId rows = b.all_gather(pack_all(b, whole));
  return unpack_rows(b, rows, type.dtype, type.dims[0]);
}

ValueId swap_packed(Builder& b, const ir::Op& op) {
  const ValueId x = op.operands[0];
  HostExprPool& exprs = b.exprs();
  const ir::Type type = b.type(x);
  const int bits = type.dtype.bits;
  // Kept, so that a sweep over bytes does not compute elements again.
  const ValueId bytes = pack_all(b, fill_rows(b, b.keep(x), bits));
  const HostExprId groups = exprs.ceil_div(type.dims[1], exprs.const_int(group_size(bits)));
  const HostExprId width = exprs.mul(groups, exprs.const_int(group_size(bits) * bits / kByteBits));
  const ir::Type by_rank = ir::matrix_type(kU8, type.dims[0], width);
  const ValueId swapped =
      b.all_to_all(b.reshape(bytes, by_rank, true), op.attrs.size, op.attrs.size2);
  return unpack_rows(b, swapped, type.dtype, type.dims[1]);
}

// The collective gives an array of the shape that it gets.
ValueId send_packed(Builder& b, const ir::Op& op) {
  HostExprPool& exprs = b.exprs();
  const ir::Type type = b.type(op.operands[0]);
  const ValueId bytes = pack_all(b, op.operands[0]);
  const ValueId sent = op.kind == OpKind::broadcast ? b.broadcast(bytes, op.attrs.index)
                       : op.kind == OpKind::broadcast_from
                           ? b.broadcast_from(bytes, op.operands[1], op.attrs.text)
                           : b.send_receive(bytes, op.operands[1], op.attrs.text);
  const ValueId flat = unpack_as(b, sent, type.dtype, ir::element_count(exprs, type));
  return b.reshape(flat, type, true);
}

// Elements in one row of bytes, if known: a few elements may take no fewer bytes when packed.
bool is_smaller(const HostExprPool& exprs, const ir::Op& op, const ir::Type& type) {
  std::int64_t elements = 1;
  for (int d = op.kind == OpKind::all_to_all ? 1 : 0; d < type.rank; ++d) {
    const auto size = ir::constant_size(exprs, type.dims[d]);
    if (!size) return true;
    elements *= *size;
  }
  const int bits = type.dtype.bits;
  const std::int64_t group = group_size(bits);
  const std::int64_t groups = (elements + group - 1) / group;
  return groups * group * bits / kByteBits < elements;
}

bool has_known_size(const HostExprPool& exprs, const ir::Type& type) {
  for (int d = 0; d < type.rank; ++d) {
    if (exprs.has_count(type.dims[d])) return false;
  }
  return type.rank > 0;
}

}  // namespace

void pack_exchanges(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, [](Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
    if (op.kind != OpKind::all_gather && op.kind != OpKind::all_to_all &&
        op.kind != OpKind::broadcast && op.kind != OpKind::broadcast_from &&
        op.kind != OpKind::send_receive) {
      return std::nullopt;
    }
    const ir::Type type = b.type(op.operands[0]);
    const bool is_narrow = !is_float(type.dtype) && type.dtype.bits < kByteBits;
    if (!is_narrow || !has_known_size(b.exprs(), type)) return std::nullopt;
    if (!is_smaller(b.exprs(), op, type)) return std::nullopt;
    if (op.kind == OpKind::all_gather) return ir::ValueIds{gather_packed(b, op.operands[0])};
    if (op.kind == OpKind::all_to_all) return ir::ValueIds{swap_packed(b, op)};
    return ir::ValueIds{send_packed(b, op)};
  });
}

}  // namespace cinch::passes
