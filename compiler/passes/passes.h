// All passes over the IR. Each keeps every bit of every result, asks the context before each
// rewrite, and leaves a program that verifies. The head of each file shows an example before and
// after.
#pragma once

#include "compiler/ir/ir.h"
#include "compiler/passes/pass_context.h"

namespace cinch::passes {

/// Local rules (passes/rules): constants folded, operations that change nothing dropped.
void simplify(ir::Program& program, PassContext& context);
/// Merges equal ops on equal operands.
void eliminate_common_values(ir::Program& program, PassContext& context);
/// Removes ops that no result and no check needs.
void eliminate_dead_values(ir::Program& program, PassContext& context);
/// Turns array ops on constant tables into tables.
void fold_constant_arrays(ir::Program& program, PassContext& context);
/// Turns branches of a few scalar operations into selects.
void convert_if_to_select(ir::Program& program, PassContext& context);
/// Turns top_k and kth_largest into histograms of digits, or sorts along rows.
void expand_selection(ir::Program& program, PassContext& context);
/// Turns scatter_reduce into the maximum of keys of 32 or 64 bits.
void expand_scatter_reduce(ir::Program& program, PassContext& context);
/// Turns orthonormalize into a loop over columns, and hadamard of rows that fit a tile into
/// butterflies.
void expand_matrix_ops(ir::Program& program, PassContext& context);
/// Turns matrix products with a thin factor into reductions in one sweep, or sums of a few terms.
void expand_thin_products(ir::Program& program, PassContext& context);
/// Turns reductions over a small table for each element into operations on scalars of the table.
void expand_lane_reductions(ir::Program& program, PassContext& context);
/// Turns sums along the columns of long matrices into sums of whole rows.
void expand_column_sums(ir::Program& program, PassContext& context);

/// Packs integers that ranks add up into words of fields, each as wide as the sum over all ranks.
void pack_rank_sums(ir::Program& program, PassContext& context);
/// Packs bool and integers of fewer than 8 bits that ranks exchange.
void pack_exchanges(ir::Program& program, PassContext& context);

/// Sets ProgramInfo::aggregation: may payloads be added up field by field?
void prove_aggregation(ir::Program& program, PassContext& context);

}  // namespace cinch::passes
