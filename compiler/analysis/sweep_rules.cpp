#include "compiler/analysis/forced_sweeps.h"

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"

namespace cinch::analysis {
namespace {

using ir::Forces;
using ir::Op;
using ir::OpKind;

// Digits that an exact selection reads before it knows its threshold.
constexpr std::size_t kSelectionSweeps = 2;

// Does an element of the product have few terms, or do rows stay on chip?
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
  const bool is_along_rows = op.attrs.axis == 1;
  switch (ir::op_info(op.kind).forces) {
    case Forces::Free:
      return 0;
    case Forces::Whole:
      return 1;
    case Forces::Across:
      return is_along_rows ? 0 : 1;
    case Forces::Selection:
      return is_along_rows ? 0 : kSelectionSweeps;
    case Forces::Places:
      return op.attrs.proved || op.attrs.in_rows ? 0 : 1;
    case Forces::Terms:
      return has_few_terms(program, function, op) ? 0 : 1;
  }
  return 0;
}

bool is_made_whole(OpKind kind) {
  const Forces forces = ir::op_info(kind).forces;
  return forces != Forces::Free && forces != Forces::Selection;
}

}  // namespace cinch::analysis
