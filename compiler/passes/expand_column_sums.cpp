// expand_column_sums: computes the sums of a matrix's columns by whole rows, so that memory is read
// in its order. The bits stay the same, since the order of a reduction (docs/language_bits.md) is
// one of whole rows here: in a tile of 1024 rows, rows 128 apart are added first, then halves.
//
// Few rows, such as one of each rank, stay: a kernel takes a column, and CPUs take many side by
// side.
//
//   before:  %1 = reduce %x {axis=0, add}          x: [f32; r, c], c not constant and no count
//   after:   %a = keep (rows i, i + 128, … i + 896 of each tile of %x, added in this order)
//            %b = keep (16 rows of %a, 8 apart, added by halves)
//            %d = keep (8 rows of %b, added by halves)
//            %1 = reduce %d {axis=0, add}          one row for each tile
//
// A missing row is -0, which changes no sum.
#include "compiler/lower/prelude.h"
#include "compiler/passes/passes.h"
#include "runtime/core/numbers/ordered_reduce.h"

namespace cinch::passes {
namespace {

using ir::ValueId;

// Each adds groups of rows of one matrix to one row of another: of a tile, `rows` are left.
struct Step {
  const char* function;
  std::int64_t rows;
};
constexpr Step kSteps[] = {{"add_tiles", 128}, {"add_sixteens", 8}, {"add_eights", 1}};
static_assert(kTileElems == 1024 && kTileColumns == 128);

bool is_sum_of_columns(const ir::Function& fn, const ir::Op& op) {
  if (op.kind != ir::OpKind::reduce || op.attrs.axis != 0 || op.operands.size() != 2) return false;
  const auto& joined = fn.combiners[op.attrs.combiner.index()].op;
  const ir::Value& x = fn.values[op.operands[0].index()];
  const ir::Type& type = x.type;
  // The rest of a sum that was expanded already.
  if (fn.ops[x.def.index()].kind == ir::OpKind::keep) return false;
  return joined == ScalarOp::add && type.rank == 2 && is_float(type.dtype);
}

// Does the number of rows grow with the gradient?
bool may_be_many(const HostExprPool& exprs, HostExprId rows) {
  return exprs.depends_on(rows, HostOp::N) || exprs.depends_on(rows, HostOp::Rows) ||
         exprs.depends_on(rows, HostOp::Cols) || exprs.depends_on(rows, HostOp::Param);
}

}  // namespace

void expand_column_sums(ir::Program& program, PassContext& context) {
  rewrite_all(program, context,
              [](ir::Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
                if (!is_sum_of_columns(b.function(), op)) return std::nullopt;
                ValueId x = op.operands[0];
                const ir::Type type = b.type(x);
                HostExprPool& exprs = b.exprs();
                // Kernels have no rows of counted length.
                if (exprs.has_count(type.dims[1]) || ir::constant_size(exprs, type.dims[1]) ||
                    !may_be_many(exprs, type.dims[0])) {
                  return std::nullopt;
                }
                const HostExprId tile = exprs.const_int(kTileElems);
                const HostExprId num_tiles = exprs.ceil_div(type.dims[0], tile);
                for (const Step& step : kSteps) {
                  const HostExprId most = exprs.mul(num_tiles, exprs.const_int(step.rows));
                  const HostExprId num = exprs.min(most, b.type(x).dims[0]);
                  x = b.keep(lower::call_prelude(b, step.function, type.dtype, {x, num})[0]);
                }
                return ir::ValueIds{b.reduce({x}, {op.operands[1]}, op.attrs.combiner, 0).front()};
              });
}

}  // namespace cinch::passes
