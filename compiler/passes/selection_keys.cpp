// The bits of non-negative floats are in order; those of negative ones are
// inverted, and the sign bit is flipped so that they come below.
#include "compiler/passes/selection.h"

#include "compiler/ir/rewriter.h"

namespace cinch::passes {
namespace {

bool is_abs(const ir::Function& function, ir::ValueId value) {
  const ir::Op& op = ir::defining_op(function, value);
  return op.kind == ir::OpKind::map && op.attrs.scalar_op == ScalarOp::abs;
}

DType unsigned_of(DType type) {
  return type.bits > 32 ? kU64 : kU32;
}
DType signed_of(DType type) {
  return type.bits > 32 ? kI64 : kI32;
}

ir::ValueId sign_bit(ir::Builder& b, DType type, int bits) {
  return b.constant_int(type, static_cast<std::int64_t>(std::uint64_t{1} << (bits - 1)));
}

SelectionKeys float_keys(ir::Builder& b, ir::ValueId values, ZeroOrder zeros) {
  const bool is_magnitude = zeros == ZeroOrder::Equal && is_abs(b.function(), values);
  if (is_narrow_float(b.dtype(values))) values = b.convert(values, kF32);
  const DType type = b.dtype(values);
  SelectionKeys result{{}, unsigned_of(type), type.bits, is_magnitude};
  if (is_magnitude) {
    result.keys = b.bitcast(values, result.key_type);
    return result;
  }
  const ir::ValueId plain = zeros == ZeroOrder::NegativeBelow
                                ? values
                                : b.map(ScalarOp::add, values, b.constant(type, 0));  // -0 to +0
  const ir::ValueId as_int = b.bitcast(plain, signed_of(type));
  const ir::ValueId width = b.constant_int(signed_of(type), type.bits - 1);
  const ir::ValueId ones = b.map(ScalarOp::shr, as_int, width);  // all ones if negative
  const ir::ValueId turned = b.map(ScalarOp::bit_or, b.bitcast(ones, result.key_type),
                                   sign_bit(b, result.key_type, type.bits));
  result.keys = b.map(ScalarOp::bit_xor, b.bitcast(as_int, result.key_type), turned);
  return result;
}

SelectionKeys int_keys(ir::Builder& b, ir::ValueId values) {
  const DType type = b.dtype(values);
  SelectionKeys result{{}, unsigned_of(type), type.bits};
  if (!is_signed_int(type)) {
    result.keys = b.convert(values, result.key_type);
    return result;
  }
  const DType wide = signed_of(type);
  const ir::ValueId as_key = b.bitcast(b.convert(values, wide), result.key_type);
  // Adding half the range maps the smallest value to 0; it wraps within the key's type.
  result.keys = b.map(ScalarOp::add, as_key, sign_bit(b, result.key_type, type.bits));
  return result;
}

}  // namespace

SelectionKeys make_keys(ir::Builder& b, ir::ValueId values, ZeroOrder zeros) {
  return is_float(b.dtype(values)) ? float_keys(b, values, zeros) : int_keys(b, values);
}

ir::ValueId value_of_key(ir::Builder& b, const SelectionKeys& keys, ir::ValueId key,
                         DType value_type) {
  const ir::ValueId top = sign_bit(b, keys.key_type, keys.bits);
  if (is_float(value_type)) {
    const DType type = keys.bits == 64 ? kF64 : kF32;
    ir::ValueId bits = key;
    if (!keys.is_magnitude) {
      const ir::ValueId is_positive = b.map(ScalarOp::ge, key, top);
      bits =
          b.select(is_positive, b.map(ScalarOp::bit_xor, key, top), b.map(ScalarOp::bit_not, key));
    }
    return b.convert(b.bitcast(bits, type), value_type);
  }
  if (!is_signed_int(value_type)) return b.convert(key, value_type);
  const ir::ValueId centred = b.map(ScalarOp::sub, key, top);
  return b.convert(b.bitcast(centred, signed_of(value_type)), value_type);
}

}  // namespace cinch::passes
