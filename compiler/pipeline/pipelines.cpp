// The list of all passes, their order, and the manager that verifies, prints, times and counts.
#include <algorithm>
#include <chrono>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/core/check.h"

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

// Runs passes: verify, print, time, count.

namespace {

bool is_named(const std::vector<std::string>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& each) { return each == name || each == "all"; });
}

// A fault inside a pass gets the pass's name and its input program.
PassTime run_timed(const Pass& pass, ir::Program& program, passes::PassContext& context) {
  const std::int64_t before = context.num_rewrites();
  const auto start = std::chrono::steady_clock::now();
  try {
    pass.run(program, context);
  } catch (InternalError& error) {
    if (error.stage().empty()) error.attach(std::string(pass.name), ir::print(program));
    throw;
  }
  ir::verify(program, std::string(pass.name));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return {std::string(pass.name), taken.count(), context.num_rewrites() - before};
}

}  // namespace

Report run(ir::Program& program, const Options& options) {
  std::vector<std::string> names = options.passes;
  if (names.empty()) names.assign(standard_order().begin(), standard_order().end());
  passes::PassContext context;
  if (options.pass_limit) context.set_limit(*options.pass_limit);
  context.set_evaluate(options.evaluate);
  ir::verify(program, "lower");
  Report report;
  for (const std::string& name : names) {
    const Pass* pass = find_pass(name);
    CINCH_CHECK(pass != nullptr, "no pass is named " + name);
    context.set_pass(name);
    report.times.push_back(run_timed(*pass, program, context));
    if (options.print && is_named(options.print_after, name)) {
      options.print("after " + name, ir::print(program));
    }
  }
  report.remarks = context.remarks();
  report.num_rewrites = context.num_rewrites();
  return report;
}

}  // namespace cinch::pipeline
