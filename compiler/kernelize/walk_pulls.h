// Walks what a sink pulls: through operators that are functions of an index, down to leaves, stored
// values and other sinks.
#pragma once
#include <functional>
#include <map>

#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

// Visits the values that an operator uses from its own region or from outside: its operands, and
// for control operators and combiner regions also the values that their regions use but do not
// define.
void for_each_used_value(const ir::Function& fn, ir::OpId op,
                         const std::function<void(ir::ValueId)>& visit);

// Visits the values from outside that the lambda of a reduction or scan uses.
void for_each_combiner_value(const ir::Function& fn, ir::OpId op,
                             const std::function<void(ir::ValueId)>& visit);

// Calls visit(operand, align of the operand) for each operand that a pulled operator reads when it
// is pulled with `align`. `compaction_idx` is the selection whose positions Selected values follow
// (invalid: none); gathers by it read their source flat.
void for_each_pulled_operand(const FunctionContext& cx, const ir::Op& op, ir::ValueId result,
                             Align align, ir::ValueId compaction_idx,
                             const std::function<void(ir::ValueId, Align)>& visit);

// Is `v` the value `selection`, perhaps behind conversions that keep it?
bool is_selection(const FunctionContext& cx, ir::ValueId v, ir::ValueId selection);

// Walks down from a value. A stored value is read from memory, once it is there. An element that is
// needed Few times is recomputed, so that a sample of an array does not wait for all of it.
struct PullWalk {
  const FunctionContext& cx;
  const RegionPlan& plan;
  int compaction = -1;  // the Nonzero sink whose kernel this is
  int self = -1;
  std::vector<Edge> edges = {};
  std::map<std::pair<std::uint32_t, Align>, bool> seen = {};

  void visit(ir::ValueId v, Align align);
  void add_edge(int sink, Align align, Edge::Kind kind = Edge::Kind::Value,
                std::uint32_t result = 0);
  // Visits the selection that finds a size, if the size is a count. `is_own_known`: skips the
  // selection of this kernel.
  void visit_count(HostExprId size, bool is_own_known = false);
  void add_count(std::uint64_t count, bool is_own_known);
  void visit_counts(const ir::Type& type, bool is_own_known = false);
  // Visits the counts in the sizes that an operator with a sink of its own uses, also in its
  // regions.
  void visit_counts_of(ir::OpId op);
};

// The Nonzero sink whose positions the elements of `v` follow, if `v` can be stored in its kernel.
int find_compaction(const FunctionContext& cx, const RegionPlan& plan, ir::ValueId v);

}  // namespace cinch::codegen
