#include "compiler/analysis/sweep_rules.h"

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"

namespace cinch::analysis {
namespace {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

// Digits that an exact selection looks at before it knows its threshold.
constexpr std::size_t kSelectionSweeps = 2;

bool is_map(const Op& op, ScalarOp scalar_op) {
  return op.kind == OpKind::map && op.attrs.scalar_op == scalar_op;
}

// As lowering writes a scatter along the rows of a matrix: the number of the row, times the
// columns, plus a column.
bool stays_in_its_row(const ir::Function& function, ValueId index) {
  const Op& sum = ir::defining_op(function, index);
  if (!is_map(sum, ScalarOp::add)) return false;
  const Op& first = ir::defining_op(function, sum.operands[0]);
  if (!is_map(first, ScalarOp::mul)) return false;
  const Op& row = ir::defining_op(function, first.operands[0]);
  return is_map(row, ScalarOp::div) &&
         ir::defining_op(function, row.operands[0]).kind == OpKind::iota;
}

// Few terms make an element of the product, or a row stays on chip.
bool has_few_terms(const ir::Program& program, const ir::Function& function, const Op& product) {
  return program.info.exprs.is_const(ir::type_of(function, product.operands[0]).dims[1]);
}

}  // namespace

bool lies_in_memory(const ir::Program& program, const ir::Type& type) {
  for (int d = 0; d < type.rank; ++d) {
    if (!program.info.exprs.is_const(type.dims[d])) return true;
  }
  return false;
}

std::size_t sweeps_forced_by(const ir::Program& program, const ir::Function& function,
                             const Op& op) {
  if (op.operands.empty()) return 0;
  if (!lies_in_memory(program, ir::type_of(function, op.operands[0]))) return 0;
  switch (op.kind) {
    case OpKind::reduce:
      return op.attrs.axis == 1 ? 0 : 1;
    case OpKind::top_k:
    case OpKind::kth_largest:
      return op.attrs.axis == 1 ? 0 : kSelectionSweeps;
    case OpKind::argsort:
      return op.attrs.axis == 1 ? 0 : 1;
    case OpKind::scatter_add:  // what ascends is complete as soon as the next place begins
      return op.attrs.proved || stays_in_its_row(function, op.operands[0]) ? 0 : 1;
    case OpKind::matmul:
      return has_few_terms(program, function, op) ? 0 : 1;
    case OpKind::histogram:
    case OpKind::orthonormalize:
      return 1;
    default:
      return 0;
  }
}

bool is_made_whole(OpKind kind) {
  switch (kind) {
    case OpKind::reduce:
    case OpKind::argsort:
    case OpKind::scatter_add:
    case OpKind::matmul:
    case OpKind::histogram:
    case OpKind::orthonormalize:
      return true;
    default:
      return false;
  }
}

}  // namespace cinch::analysis
