// The list of all passes, and the list of their order.
#include "compiler/passes/passes.h"
#include "compiler/pipeline/pipeline.h"

namespace cinch::pipeline {
namespace {

constexpr Pass kPasses[] = {
    {"simplify", passes::simplify, "folds constants and drops operations that change nothing"},
    {"eliminate_common_values", passes::eliminate_common_values,
     "computes equal things once; equal draws too"},
    {"eliminate_dead_values", passes::eliminate_dead_values,
     "drops what no result and no check needs"},
    {"fold_constant_arrays", passes::fold_constant_arrays,
     "runs operators on constant tables while compiling"},
    {"convert_if_to_select", passes::convert_if_to_select,
     "turns small scalar branches into selects"},
    {"prove_aggregation", passes::prove_aggregation,
     "finds out whether payloads add up field by field"},
    {"pack_rank_sums", passes::pack_rank_sums,
     "packs what ranks add up into words of fields that hold the sums"},
    {"pack_exchanges", passes::pack_exchanges,
     "packs bool and integers of fewer than 8 bits that ranks exchange"},
    {"expand_selection", passes::expand_selection,
     "turns top_k and kth_largest into histograms of digits"},
    {"expand_scatter_reduce", passes::expand_scatter_reduce,
     "turns least and greatest values at places into greatest keys"},
    {"expand_matrix_ops", passes::expand_matrix_ops,
     "turns orthonormalize into a loop, hadamard into butterflies of short rows"},
    {"expand_lane_reductions", passes::expand_lane_reductions,
     "turns reductions over a small table for each element into scalars of the table"},
    {"expand_thin_products", passes::expand_thin_products,
     "turns matrix products with a thin factor into few sweeps"},
    {"expand_column_sums", passes::expand_column_sums,
     "turns sums along columns into sums of whole rows"},
};

// First the program is made small, then big operators are expanded, then the result is made small
// again.
constexpr std::string_view kStandardOrder[] = {
    "simplify",
    "eliminate_common_values",  // after simplify: equal things then look equal
    "convert_if_to_select",     // before folding: a select of constants folds
    "fold_constant_arrays",
    "prove_aggregation",       // before expansion: whole operators are easier to analyse
    "eliminate_dead_values",   // before expansion: no work on unread values
    "pack_rank_sums",          // after folding: constants tell how large values are
    "pack_exchanges",          // after the sums: ranges of what was exchanged are then known
    "expand_lane_reductions",  // after folding: tables are then constants
    "expand_matrix_ops",
    "expand_thin_products",
    "expand_column_sums",  // after the products: their columns are summed
    "expand_selection",
    "expand_scatter_reduce",
    "simplify",
    "eliminate_common_values",  // two selections of one array share its keys
    "eliminate_dead_values",
};

}  // namespace

std::span<const Pass> all_passes() {
  return kPasses;
}

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

std::span<const std::string_view> standard_order() {
  return kStandardOrder;
}

}  // namespace cinch::pipeline
