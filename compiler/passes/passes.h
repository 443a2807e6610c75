// All passes over the IR. Each keeps every bit of every result, asks the context before each
// rewrite, and leaves a program that verifies. Before and after stand at the head of each file.
#pragma once

#include "compiler/ir/ir.h"
#include "compiler/passes/pass_context.h"

namespace cinch::passes {

/// Local rules (passes/rules): constants folded, operations that change nothing dropped.
void simplify(ir::Program& program, PassContext& context);
/// Equal ops on equal operands become one.
void eliminate_common_values(ir::Program& program, PassContext& context);
/// Ops that no result and no check needs go away.
void eliminate_dead_values(ir::Program& program, PassContext& context);
/// Array ops on constant tables become tables.
void fold_constant_arrays(ir::Program& program, PassContext& context);
/// Branches of a few scalar operations become selects.
void convert_if_to_select(ir::Program& program, PassContext& context);
/// top_k and kth_largest become histograms of digits, or sorts along rows.
void expand_selection(ir::Program& program, PassContext& context);
/// scatter_reduce becomes the greatest of keys of 32 or 64 bits.
void expand_scatter_reduce(ir::Program& program, PassContext& context);
/// orthonormalize becomes a loop over columns, hadamard butterflies of rows that fit a tile.
void expand_matrix_ops(ir::Program& program, PassContext& context);
/// Matrix products with a thin factor become reductions in one sweep, or sums of a few terms.
void expand_thin_products(ir::Program& program, PassContext& context);
/// Reductions over a small table for each element become operations on scalars of the table.
void expand_lane_reductions(ir::Program& program, PassContext& context);
/// Sums along the columns of long matrices become sums of whole rows.
void expand_column_sums(ir::Program& program, PassContext& context);

/// Sums of integers over ranks travel as words of fields, each as wide as what all ranks add up to.
void pack_rank_sums(ir::Program& program, PassContext& context);

/// Sets ProgramInfo::aggregation: may payloads be added up field by field?
void prove_aggregation(ir::Program& program, PassContext& context);

}  // namespace cinch::passes
