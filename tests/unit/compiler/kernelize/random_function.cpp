// Values with wanted properties, and element-wise steps.
#include "tests/unit/compiler/kernelize/random_function.h"

namespace cinch::codegen {

using ir::OpKind;

// The newest values come up most often, so that chains grow long.
ValueId RandomFunction::any() {
  const int num = static_cast<int>(values_.size());
  const int back = maybe(60) ? below(std::min(num, 4)) : below(num);
  return values_[static_cast<std::size_t>(num - 1 - back)];
}

ValueId RandomFunction::array() {
  for (int i = 0; i < 20; ++i) {
    const auto v = any();
    if (type(v).rank > 0) return v;
  }
  return values_.front();
}

ValueId RandomFunction::flat(ValueId v) {
  if (type(v).rank == 1) return v;
  return b_.reshape(v, {type(v).dtype, 1, {size(v), {}}});
}

ValueId RandomFunction::vector() {
  return flat(array());
}

ValueId RandomFunction::matrix() {
  for (int i = 0; i < 6; ++i) {
    const auto v = any();
    if (type(v).rank == 2) return v;
  }
  static constexpr int kWidths[] = {1, 2, 3, 4, 7, 8, 16, 100, 1500};
  return b_.chunk(vector(), pool().const_int(kWidths[below(9)]));
}

ValueId RandomFunction::scalar(DType dtype) {
  for (int i = 0; i < 3; ++i) {
    const auto v = any();
    if (type(v).rank == 0) return as(v, dtype);
  }
  if (maybe(30) && !program_.info.params.empty())
    return as(
        b_.param(static_cast<std::uint32_t>(below(static_cast<int>(program_.info.params.size())))),
        dtype);
  if (maybe(20)) return as(b_.host_size(pool().n(), maybe(50) ? kF32 : kU32), dtype);
  if (is_bool(dtype)) return b_.constant_bool(maybe(50));
  if (is_float(dtype)) return as(b_.constant(kF32, (below(33) - 16) * 0.25), dtype);
  return as(b_.constant_int(kI32, below(40) - (is_signed_int(dtype) ? 20 : 0)), dtype);
}

ValueId RandomFunction::floats(ValueId v) {
  const auto t = type(v).dtype;
  return t == kF32 || t == kF64 ? v : as(v, maybe(80) ? kF32 : kF64);
}

ValueId RandomFunction::computed(ValueId v) {
  const auto t = type(v).dtype;
  if (is_bool(t)) return as(v, maybe(50) ? kU32 : kF32);
  return is_narrow_float(t) ? as(v, kF32) : v;
}

ValueId RandomFunction::mask_like(ValueId v) {
  const auto x = like(any(), type(v));
  if (is_bool(type(x).dtype)) return x;
  const auto y = computed(x);
  return b_.map(maybe(50) ? ScalarOp::gt : ScalarOp::le, y, scalar(type(y).dtype));
}

bool RandomFunction::may_be_empty(ir::Type t) {
  for (int d = 0; d < t.rank; ++d) {
    if (pool().has_count(t.dims[d])) return true;
  }
  return false;
}

ValueId RandomFunction::indices(HostExprId num, HostExprId below_size) {
  auto from = b_.iota(num);
  if (maybe(60)) from = as(like(vector(), type(from)), kU32);
  if (maybe(30)) from = b_.map(ScalarOp::mul, from, b_.constant_int(kU32, 1 + 2 * below(20)));
  return b_.map(ScalarOp::mod, from, size_u32(below_size));
}

ValueId RandomFunction::like(ValueId v, ir::Type to) {
  const auto t = type(v);
  if (ir::shapes_agree(program_.info, t, to)) return v;
  if (to.rank == 0) {
    if (may_be_empty(t)) return scalar(t.dtype);
    return b_.gather(flat(v), b_.map(ScalarOp::mod, scalar(kU32), size_u32(size(v))));
  }
  if (t.rank == 0 || may_be_empty(t)) return b_.fill(t.rank == 0 ? v : scalar(t.dtype), to);
  const auto wanted = ir::element_count(pool(), to);
  const auto index = b_.map(ScalarOp::mod, b_.iota(wanted), size_u32(size(v)));
  return b_.reshape(b_.gather(flat(v), index), to);
}

DType RandomFunction::some_int() {
  static const std::vector<DType> kTypes = {kU32,           kI32,          kU8,  kI64,
                                            kU64,           *make_uint(3), kI16, *make_int(12),
                                            *make_uint(40), *make_int(40)};
  return kTypes[maybe(60) ? below(2) : below(10)];
}

DType RandomFunction::some_type() {
  static constexpr DType kTypes[] = {kF32, kF64, kF16, kBF16, kF8E4M3, kF8E5M2, kBool};
  const int i = below(12);
  return i < 7 ? kTypes[i] : some_int();
}

namespace {
bool takes(ScalarOp op, DType t) {
  using enum ScalarOp;
  const bool is_logical = op == bit_not || op == bit_and || op == bit_or || op == bit_xor;
  if (op == select) return true;
  if (is_narrow_float(t)) return false;
  if (is_bool(t)) return is_logical || (op >= eq && op <= ge);
  const bool is_float_only =
      (op >= sqrt && op <= cos) || op == pow || op == fma || op == isnan || op == isfinite;
  const bool is_int_only =
      op == popcount || op == clz || op == shl || op == shr || op == ceil_div || is_logical;
  return is_float(t) ? !is_int_only : !is_float_only;
}
}  // namespace

void RandomFunction::add_map() {
  auto a = maybe(85) ? array() : any();
  if (maybe(30)) a = floats(a);
  auto op = static_cast<ScalarOp>(below(kNumScalarOps));
  while (!takes(op, type(a).dtype)) op = static_cast<ScalarOp>(below(kNumScalarOps));
  if (maybe(40) && takes(ScalarOp::add, type(a).dtype)) {
    static constexpr ScalarOp kPlain[] = {ScalarOp::add, ScalarOp::sub, ScalarOp::mul,
                                          ScalarOp::max};
    op = kPlain[below(4)];
  }
  const auto dtype = type(a).dtype;
  const auto operand = [&]() -> ValueId {
    if (maybe(30)) return scalar(dtype);
    const auto x = maybe(80) ? any() : matrix();
    if (type(a).rank == 2 && type(x).rank == 2 && !may_be_empty(type(x)) && maybe(50)) {
      // A row or a column broadcasts.
      const auto ta = type(a);
      const auto one = pool().const_int(1);
      const ir::Type shape = maybe(50) ? ir::matrix_type(dtype, ta.dims[0], one)
                                       : ir::matrix_type(dtype, one, ta.dims[1]);
      return as(like(x, shape), dtype);
    }
    return as(like(x, type(a)), dtype);
  };
  if (op == ScalarOp::select) {
    const auto c = mask_like(a);
    return add(maybe(50) ? b_.select(c, a, operand()) : b_.select(c, operand(), a));
  }
  ir::ValueIds operands{a};
  while (static_cast<int>(operands.size()) < scalar_op_info(op).arity)
    operands.push_back(operand());
  if (operands.size() == 2 && maybe(20)) std::swap(operands[0], operands[1]);
  add(b_.map(op, operands));
}

void RandomFunction::add_convert() {
  add(as(any(), some_type()));
}

void RandomFunction::add_bitcast() {
  const auto v = any();
  const auto t = type(v).dtype;
  if (t == kF32) return add(b_.bitcast(v, maybe(50) ? kU32 : kI32));
  if (t == kU32 || t == kI32) return add(b_.bitcast(v, kF32));
  if (t == kF64) return add(b_.bitcast(v, maybe(50) ? kU64 : kI64));
  if (t == kU64 || t == kI64) return add(b_.bitcast(v, kF64));
  if (t == kF16 || t == kBF16) return add(b_.bitcast(v, maybe(50) ? kU16 : kI16));
  if (t == kF8E4M3 || t == kF8E5M2) return add(b_.bitcast(v, maybe(50) ? kU8 : kI8));
  if (is_bool(t)) return add(b_.bitcast(v, *make_uint(1)));
  if (is_int(t)) {
    const auto other = is_signed_int(t) ? make_uint(t.bits) : make_int(t.bits);
    if (other) add(b_.bitcast(v, *other));
  }
}

void RandomFunction::add_draw() {
  const auto shape = type(maybe(85) ? array() : any());
  switch (below(5)) {
    case 0:
      return add(b_.draw(OpKind::random, shape, site(), iteration()));
    case 1:
      return add(b_.draw(OpKind::random_bits, shape, site(), iteration()));
    case 2:
      return add(b_.draw(OpKind::normal, shape, site(), iteration()));
    case 3: {
      const auto x = vector();
      if (may_be_empty(type(x))) return;
      const auto index = b_.random_index(smaller(size(x), 60), size(x), site(), iteration());
      add(index);
      return add(b_.gather(x, index));
    }
    default:
      return add(b_.stochastic_round(floats(any()), site(), iteration()));
  }
}

}  // namespace cinch::codegen
