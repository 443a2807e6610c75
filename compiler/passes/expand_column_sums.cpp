// expand_column_sums: computes the sums of a matrix's columns by whole rows, so that memory is read
// in its order. The bits stay the same, since the order of a reduction (docs/language_bits.md) is
// one of whole rows here: in a tile of 1024 rows, rows 128 apart are added first, then halves.
//
//   before:  %1 = reduce %x {axis=0, add}          x: [f32; r, c], c not constant and no count
//   after:   %a = keep (rows i, i + 128, … i + 896 of each tile of %x, added in this order)
//            %b = keep (16 rows of %a, 8 apart, added by halves)
//            %d = keep (8 rows of %b, added by halves)
//            %1 = reduce %d {axis=0, add}          one row for each tile
//
// A missing row is -0, which changes no sum.
#include <vector>

#include "compiler/passes/passes.h"
#include "runtime/core/numbers/ordered_reduce.h"

namespace cinch::passes {
namespace {

using ir::ValueId;

// Where the halving tree of a tile is split in two.
constexpr std::int64_t kFirstHalves = 16, kLastHalves = 8;
static_assert(kFirstHalves * kLastHalves == kTileColumns);

// Groups of rows of one matrix; each group is added to one row of another.
struct Step {
  std::int64_t group_in, group_out;  // rows of a group before and after; group_in / group_out terms
  bool by_halves;
};
constexpr Step kSteps[] = {
    {kTileElems, kTileColumns, false},
    {kTileColumns, kLastHalves, true},
    {kLastHalves, 1, true},
};

ValueId add_in_order(ir::Builder& b, const Step& step, std::vector<ValueId> terms) {
  if (!step.by_halves) {
    ValueId sum = terms[0];
    for (std::size_t i = 1; i < terms.size(); ++i) sum = b.map(ScalarOp::add, sum, terms[i]);
    return sum;
  }
  for (std::size_t distance = terms.size() / 2; distance >= 1; distance /= 2) {
    for (std::size_t j = 0; j < distance; ++j) {
      terms[j] = b.map(ScalarOp::add, terms[j], terms[j + distance]);
    }
  }
  return terms[0];
}

ValueId u32(ir::Builder& b, std::int64_t value) {
  return b.constant_int(kU32, value);
}

// Rows `base` + offset of x if they exist, else -0. Operators are total: missing rows are gathered,
// too, from row 0.
ValueId rows_at(ir::Builder& b, ValueId x, ValueId base, std::int64_t offset) {
  const ir::Type type = b.type(x);
  const ValueId rows = b.host_size(type.dims[0], kU32);
  // No sum exceeds 2^32, and no difference is below 0: in the last tile the row `base` may not
  // exist.
  const ValueId left = b.map(ScalarOp::sub, rows, b.map(ScalarOp::min, base, rows));
  const ValueId is_there = b.map(ScalarOp::gt, left, u32(b, offset));
  const ValueId row = b.map(ScalarOp::add, base, u32(b, offset));
  const ValueId index = b.select(is_there, row, u32(b, 0));
  const ValueId found = b.gather(x, index);
  const ir::Type column = ir::matrix_type(kBool, b.type(index).dims[0], b.exprs().const_int(1));
  return b.select(b.reshape(is_there, column), found, b.constant(type.dtype, -0.0));
}

ValueId add_rows(ir::Builder& b, ValueId x, const Step& step, HostExprId num_tiles) {
  HostExprPool& exprs = b.exprs();
  const HostExprId most = exprs.mul(num_tiles, exprs.const_int(step.group_out));
  const ValueId row = b.iota(exprs.min(most, b.type(x).dims[0]));
  // Row i of the result: group i / group_out, and in it the rows i % group_out, and so on.
  const ValueId group = b.map(ScalarOp::div, row, u32(b, step.group_out));
  const ValueId within = b.map(ScalarOp::mod, row, u32(b, step.group_out));
  const ValueId base =
      b.map(ScalarOp::add, b.map(ScalarOp::mul, group, u32(b, step.group_in)), within);
  std::vector<ValueId> terms;
  for (std::int64_t at = 0; at < step.group_in; at += step.group_out) {
    terms.push_back(rows_at(b, x, base, at));
  }
  return b.keep(add_in_order(b, step, std::move(terms)));
}

bool is_sum_of_columns(const ir::Function& fn, const ir::Op& op) {
  if (op.kind != ir::OpKind::reduce || op.attrs.axis != 0 || op.operands.size() != 2) return false;
  const auto& joined = fn.combiners[op.attrs.combiner.index()].op;
  const ir::Value& x = fn.values[op.operands[0].index()];
  const ir::Type& type = x.type;
  // The rest of a sum that was expanded already.
  if (fn.ops[x.def.index()].kind == ir::OpKind::keep) return false;
  return joined == ScalarOp::add && type.rank == 2 && is_float(type.dtype);
}

}  // namespace

void expand_column_sums(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, [](ir::Builder& b, ir::OpId id) -> std::optional<ir::ValueIds> {
    const ir::Op op = b.function().ops[id.index()];
    if (!is_sum_of_columns(b.function(), op)) return std::nullopt;
    ValueId x = op.operands[0];
    const ir::Type type = b.type(x);
    HostExprPool& exprs = b.exprs();
    // Kernels have no rows of counted length.
    if (exprs.has_count(type.dims[1])) return std::nullopt;
    if (ir::constant_size(exprs, type.dims[1]) || ir::constant_size(exprs, type.dims[0])) {
      return std::nullopt;
    }
    const HostExprId tile = exprs.const_int(kTileElems);
    const HostExprId num_tiles = exprs.ceil_div(type.dims[0], tile);
    for (const Step& step : kSteps) x = add_rows(b, x, step, num_tiles);
    return ir::ValueIds{b.reduce({x}, {op.operands[1]}, op.attrs.combiner, 0).front()};
  });
}

}  // namespace cinch::passes
