// All passes over the IR. Each keeps every bit of every result, asks the context before each
// rewrite, and leaves a program that verifies. The head of each file shows an example before and
// after.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/ir/ir.h"
#include "runtime/core/numbers/ordered_reduce.h"
#include "runtime/core/step_limit.h"

namespace cinch::passes {
// What the manager gives a pass: permission for each rewrite, a place for remarks, and the
// evaluation of constant functions. (The interpreter is a later layer than the passes, so it is
// passed in.)

/// Why a pass did not do what it might have done.
struct Remark {
  std::string pass;
  dsl::Span span;
  std::string text;
};

class PassContext {
 public:
  /// Encoded elements (runtime/core/numbers/scalar_eval.h) of the output of a function without
  /// inputs, or nothing if it fails.
  using Evaluate = std::function<std::optional<std::vector<std::uint64_t>>(const ir::Program&,
                                                                           const ir::Function&)>;

  /// False once the limit is reached.
  bool has_leave() const { return steps_.has_leave(); }
  /// Ask before each rewrite. Counts the rewrite if it is permitted.
  bool may_rewrite() { return steps_.may_take(); }
  std::int64_t num_rewrites() const { return steps_.taken(); }
  void set_limit(std::int64_t limit) { steps_ = rt::StepLimit(limit); }

  void set_pass(std::string name) { pass_ = std::move(name); }
  void remark(dsl::Span span, std::string text) {
    // A pass that runs twice makes the same remark twice; people want it once.
    for (const Remark& said : remarks_) {
      if (said.pass == pass_ && said.span == span && said.text == text) return;
    }
    remarks_.push_back({pass_, span, std::move(text)});
  }
  const std::vector<Remark>& remarks() const { return remarks_; }

  void set_evaluate(Evaluate evaluate) { evaluate_ = std::move(evaluate); }
  std::optional<std::vector<std::uint64_t>> evaluate(const ir::Program& program,
                                                     const ir::Function& function) const {
    return evaluate_ ? evaluate_(program, function) : std::nullopt;
  }

 private:
  rt::StepLimit steps_;
  std::string pass_;
  std::vector<Remark> remarks_;
  Evaluate evaluate_;
};

// The loop that passes with local rewrites share. It offers every op once, in order; the rewrite
// inserts new ops before the offered one.

/// Builds before the op (the builder's insertion point) and returns a value for each result, or
/// nothing if the op stays. It must build nothing if it returns nothing. The regions around the op
/// hold only the ops before it. `op` is a copy: building moves the vector of ops.
using Rewrite = std::function<std::optional<ir::ValueIds>(ir::Builder& builder, const ir::Op& op)>;

/// Offers every op of every function, including initial values, inner regions and combiners, while
/// the context permits it, and counts replacements. A replaced op is removed and its uses changed
/// before the next op is offered. Returns true if anything changed.
bool rewrite_all(ir::Program& program, PassContext& context, const Rewrite& rewrite);

/// Joins what a reduction joins, at most one row of a tile, in its order.
template <typename Value, typename Join>
Value joined_in_order(std::vector<Value> values, Join&& join) {
  for (std::size_t distance = kTileColumns / 2; distance >= 1; distance /= 2) {
    for (std::size_t i = 0; i < distance && i + distance < values.size(); ++i) {
      values[i] = join(values[i], values[i + distance]);
    }
    if (values.size() > distance) values.resize(distance);
  }
  return values[0];
}

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
