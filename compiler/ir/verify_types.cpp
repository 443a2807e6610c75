// Types, shapes and attributes: leaves, generators, element-wise operators and access. One small
// rule for each kind of op, found in ops.def.

#include "compiler/ir/ops.h"
#include "compiler/ir/verifier.h"
#include "runtime/core/extern_function.h"

namespace cinch::ir {
namespace rules {
namespace {

void iteration(const OpCheck& o, std::size_t index) {
  if (o.num_in() <= index) return;
  o.require(is_scalar(o.in(index)) && is_int(o.in(index).dtype),
            "the iteration is not an integer scalar");
}

void draw(const OpCheck& o, DType dtype) {
  o.require(o.out().dtype == dtype, "the result is not " + dtype_name(dtype));
  iteration(o, 0);
}

void map_element(const OpCheck& o, DType t) {
  using enum ScalarOp;
  const ScalarOp op = o.op.attrs.scalar_op;
  const std::string name = dtype_name(t);
  o.require(!is_narrow_float(t), "arithmetic is not done in " + name);
  const bool is_logical = op == bit_not || op == bit_and || op == bit_or || op == bit_xor;
  const bool is_comparison = op >= eq && op <= ge;
  o.require(!is_bool(t) || is_logical || is_comparison, "arithmetic is not done in bool");
  const bool is_float_only =
      (op >= sqrt && op <= cos) || op == pow || op == fma || op == isnan || op == isfinite;
  o.require(!is_float_only || is_float(t), "takes floats, not " + name);
  const bool is_int_only = op == popcount || op == clz || op == shl || op == shr || op == ceil_div;
  o.require(!is_int_only || is_int(t), "takes integers, not " + name);
  o.require(!is_logical || !is_float(t), "takes integers or bool, not " + name);
}

}  // namespace

// Leaves.

void const_scalar(const OpCheck& o) {
  o.require_rank(o.out(), 0, "the result");
  const DType t = o.out().dtype;
  if (is_float(t)) return;
  const auto value = static_cast<std::int64_t>(o.op.attrs.bits);
  const bool fits = is_signed_int(t)
                        ? value >= min_int(t) && value <= static_cast<std::int64_t>(max_int(t))
                        : o.op.attrs.bits <= max_int(t);
  o.require(fits, "the value does not fit its type");
}

void const_array(const OpCheck& o) {
  o.require_limit(o.context.program.tables.size(), "table");
  const Table& table = o.context.program.tables[o.op.attrs.index];
  o.require_out(table.type);
  std::int64_t count = 1;
  for (int d = 0; d < table.type.rank; ++d) {
    const auto size = constant_size(o.exprs(), table.type.dims[d]);
    o.require(size.has_value(), "a table's size is not constant");
    count *= size.value_or(0);
  }
  o.require(count == static_cast<std::int64_t>(table.bits.size()), "a table lacks elements");
}

void param(const OpCheck& o) {
  o.require_limit(o.context.info.params.size(), "parameter");
  o.require_out(scalar_type(o.context.info.params[o.op.attrs.index].dtype));
}

void host_size(const OpCheck& o) {
  o.require_rank(o.out(), 0, "the result");
}

void gradient(const OpCheck& o) {
  o.require_has_input("gradient");
  o.require(o.context.function.kind != FunctionKind::Decode, "decode sees no gradient");
  o.require_out(o.context.info.is_matrix ? matrix_type(kF32, o.exprs().rows(), o.exprs().cols())
                                         : vector_type(kF32, o.exprs().n()));
}

void state(const OpCheck& o) {
  o.require_has_input("state");
  o.require(o.context.function.kind != FunctionKind::Decode, "decode sees no state");
  o.require_limit(o.context.info.states.size(), "state");
  o.require_out(o.context.info.states[o.op.attrs.index].type);
}

void field(const OpCheck& o) {
  o.require_has_input("field");
  o.require(o.context.function.kind == FunctionKind::Decode, "only decode sees fields");
  o.require_limit(o.context.info.wire.fields.size(), "field");
  o.require_out(o.context.info.wire.fields[o.op.attrs.index].type);
}

void count_value(const OpCheck& o) {
  o.require_limit(o.context.info.counts.size(), "count");
  o.require_out(scalar_type(kU32));
}

void arg(const OpCheck& /*o*/) {}

// Generators.

void iota(const OpCheck& o) {
  o.require_rank(o.out(), 1, "the result");
  o.require(o.out().dtype == kU32, "the result is not u32");
}

void fill(const OpCheck& o) {
  const auto met = broadcast_shape(o.context.info, o.out(), o.in(0));
  o.require(o.in(0).dtype == o.out().dtype, "the element types differ");
  o.require(met && shapes_agree(o.context.info, *met, o.out()),
            "the operand does not broadcast to the result");
}

void random(const OpCheck& o) {
  draw(o, kF32);
}

void normal(const OpCheck& o) {
  draw(o, kF32);
}

void random_bits(const OpCheck& o) {
  draw(o, kU32);
}

void random_index(const OpCheck& o) {
  draw(o, kU32);
  o.require_rank(o.out(), 1, "the result");
}

// Element-wise.

void map(const OpCheck& o) {
  const ScalarOpInfo& info = scalar_op_info(o.op.attrs.scalar_op);
  o.require(static_cast<int>(o.num_in()) == info.arity, fmt::format("{} operands", o.num_in()));
  const bool is_select = o.op.attrs.scalar_op == ScalarOp::select;
  Type shape = o.in(0);
  for (std::size_t i = 1; i < o.num_in(); ++i) {
    const auto met = broadcast_shape(o.context.info, shape, o.in(i));
    if (!met) {
      o.require(false,
                fmt::format("operands do not meet ({}, {})", print_type(o.context.info, shape),
                            print_type(o.context.info, o.in(i))));
      return;
    }
    shape = *met;
  }
  const DType element = o.in(o.num_in() - 1).dtype;
  for (std::size_t i = is_select ? 1 : 0; i < o.num_in(); ++i) {
    o.require(o.in(i).dtype == element,
              fmt::format("operands differ in type ({}, {})", dtype_name(o.in(i).dtype),
                          dtype_name(element)));
  }
  if (is_select) {
    o.require(is_bool(o.in(0).dtype), "the condition is not bool");
  } else {
    map_element(o, element);
  }
  DType result = element;
  if (info.result == ScalarResult::Bool) result = kBool;
  if (info.result == ScalarResult::U32) result = kU32;
  o.require_out(with_dtype(shape, result));
}

void convert(const OpCheck& o) {
  o.require_out(with_dtype(o.in(0), o.out().dtype));
}

void bitcast(const OpCheck& o) {
  o.require(o.in(0).dtype.bits == o.out().dtype.bits, "the widths differ");
  o.require_out(with_dtype(o.in(0), o.out().dtype));
}

void stochastic_round(const OpCheck& o) {
  o.require(is_float(o.in(0).dtype) && !is_narrow_float(o.in(0).dtype),
            "the operand is not f32 or f64");
  o.require_out(o.in(0));
  iteration(o, 1);
}

void call_extern(const OpCheck& o) {
  o.require_limit(o.context.info.externs.size(), "C++ function");
  const rt::ExternInfo& function = o.context.info.externs[o.op.attrs.index];
  o.require(o.num_in() == function.params.size(), fmt::format("{} operands", o.num_in()));
  Type shape = o.in(0);
  for (std::size_t i = 0; i < o.num_in(); ++i) {
    o.require(o.in(i).dtype == function.params[i],
              fmt::format("operand {} is not {}", i, dtype_name(function.params[i])));
    o.require(rt::is_cpp_type(o.in(i).dtype), "no type of C++");
    const auto met = broadcast_shape(o.context.info, shape, o.in(i));
    o.require(met.has_value(), "operands do not meet");
    shape = met.value_or(shape);
  }
  o.require_out(with_dtype(shape, function.result));
}

// Access.

void gather(const OpCheck& o) {
  o.require_index(o.in(1));
  o.require(o.in(0).rank >= 1 && o.in(1).rank + o.in(0).rank <= 3, "ranks do not go together");
  Type expected = scalar_type(o.in(0).dtype);
  for (int d = 0; d < o.in(1).rank; ++d) expected.dims[expected.rank++] = o.in(1).dims[d];
  if (o.in(0).rank == 2) expected.dims[expected.rank++] = o.in(0).dims[1];
  o.require_out(expected);
}

void gather_along(const OpCheck& o) {
  o.require_index(o.in(1));
  o.require_rank(o.in(0), 2, "the matrix");
  o.require_rank(o.in(1), 2, "the indices");
  o.require(o.op.attrs.axis != kAll, "an axis is needed");
  const int other = 1 - o.op.attrs.axis;
  o.require(sizes_agree(o.context.info, o.in(0).dims[other], o.in(1).dims[other]),
            "lines do not go together");
  o.require_out(with_dtype(o.in(1), o.in(0).dtype));
}

void slice(const OpCheck& o) {
  o.require(o.in(0).rank >= 1, "a scalar has no slices");
  Type expected = o.in(0);
  expected.dims[0] = o.out().rank >= 1 ? o.out().dims[0] : HostExprId{};
  o.require_out(expected);
}

void concat(const OpCheck& o) {
  Type expected = o.in(0);
  o.require(o.op.attrs.axis != 0, "not along rows");
  const int line = o.op.attrs.axis == 1 ? 1 : 0;
  for (std::size_t i = 0; i < o.num_in(); ++i) {
    o.require_rank(o.in(i), line + 1, "an operand");
    o.require(o.in(i).dtype == expected.dtype, "operands differ in type");
    if (i == 0) continue;
    o.require(line == 0 || sizes_agree(o.context.info, o.in(0).dims[0], o.in(i).dims[0]),
              "operands differ in their rows");
    expected.dims[line] = o.exprs().add(expected.dims[line], o.in(i).dims[line]);
  }
  o.require_out(expected);
}

void reshape(const OpCheck& o) {
  o.require(o.in(0).dtype == o.out().dtype, "the element types differ");
  if (o.op.attrs.proved || element_counts_agree(o.context.info, o.in(0), o.out())) return;
  o.require(false, fmt::format("{} and {} differ in size", print_type(o.context.info, o.in(0)),
                               print_type(o.context.info, o.out())));
}

void keep(const OpCheck& o) {
  o.require_out(o.in(0));
}

void transpose(const OpCheck& o) {
  o.require_rank(o.in(0), 2, "the operand");
  o.require_out(matrix_type(o.in(0).dtype, o.in(0).dims[1], o.in(0).dims[0]));
}

void chunk(const OpCheck& o) {
  o.require_rank(o.in(0), 1, "the operand");
  o.require_rank(o.out(), 2, "the result");
  const Type expected = matrix_type(
      o.in(0).dtype, o.exprs().ceil_div(o.in(0).dims[0], o.out().dims[1]), o.out().dims[1]);
  if (o.in(0).dtype == o.out().dtype && element_counts_agree(o.context.info, o.in(0), o.out()))
    return;
  o.require_out(expected);
}

void unchunk(const OpCheck& o) {
  o.require_rank(o.in(0), 2, "the operand");
  o.require_rank(o.out(), 1, "the result");
  o.require(o.in(0).dtype == o.out().dtype, "the element types differ");
}

void pack(const OpCheck& o) {
  o.require(!is_float(o.in(0).dtype), "the operand is not of integers");
  const HostExprId bits =
      o.exprs().mul(element_count(o.exprs(), o.in(0)),
                    o.exprs().const_int(static_cast<std::int64_t>(o.op.attrs.bits)));
  o.require_out(vector_type(kU8, o.exprs().ceil_div(bits, o.exprs().const_int(8))));
}

void unpack(const OpCheck& o) {
  o.require_rank(o.in(0), 1, "the operand");
  o.require(o.in(0).dtype == kU8, "the operand is not of bytes");
  o.require_rank(o.out(), 1, "the result");
  o.require(is_unsigned_int(o.out().dtype) && o.out().dtype.bits >= o.op.attrs.bits,
            "the result does not hold the width");
}

void reduce(const OpCheck& o) {
  verify_combiner(o.context, o.op);
}

void scan(const OpCheck& o) {
  verify_combiner(o.context, o.op);
}

}  // namespace rules

void verify_op_types(const VerifyContext& context, const Op& op) {
  const OpCheck check(context, op);
  switch (op.kind) {
#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  case OpKind::name:                                                                               \
    return rules::name(check);
#include "compiler/ir/ops.def"
  }
}

}  // namespace cinch::ir
