// Walks what a sink pulls: through operators that are functions of an index, down to leaves, stored
// values and other sinks.
#pragma once
#include <functional>
#include <map>

#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

// Values that an operator uses from its own region or from outside: operands, and for control
// operators and combiner regions whatever their regions use but do not define.
void for_each_used_value(const ir::Function& fn, ir::OpId op,
                         const std::function<void(ir::ValueId)>& visit);

// Values from outside that the lambda of a reduction or scan uses.
void for_each_combiner_value(const ir::Function& fn, ir::OpId op,
                             const std::function<void(ir::ValueId)>& visit);

// Calls visit(operand, align of the operand) for what a pulled operator reads when it is itself
// pulled with `align`. `compaction_idx` is the selection whose positions Selected values follow
// (invalid: none): gathers by it read their source flat.
void for_each_pulled_operand(const FunctionContext& cx, const ir::Op& op, ir::ValueId result,
                             Align align, ir::ValueId compaction_idx,
                             const std::function<void(ir::ValueId, Align)>& visit);

// Is `v` the value `selection`, seen through conversions that keep it?
bool is_selection(const FunctionContext& cx, ir::ValueId v, ir::ValueId selection);

// Walks down from a value. What is stored is read where it lies, once it is there; but an element
// wanted Few times is computed again, so that a sample of an array does not wait for all of it.
struct PullWalk {
  const FunctionContext& cx;
  const RegionPlan& plan;
  int compaction = -1;  // the Nonzero sink in whose kernel this is
  int self = -1;
  std::vector<Edge> edges = {};
  std::map<std::pair<std::uint32_t, Align>, bool> seen = {};

  void visit(ir::ValueId v, Align align);
  void add_edge(int sink, Align align, Edge::Kind kind = Edge::Kind::Value,
                std::uint32_t result = 0);
  // What is of a size known only after looking needs the selection that finds it.
  // `is_own_known`: not the one in whose kernel this is.
  void visit_count(HostExprId size, bool is_own_known = false);
  void add_count(std::uint64_t count, bool is_own_known);
  void visit_counts(const ir::Type& type, bool is_own_known = false);
  // Sizes that an operator with a sink of its own uses, those in its regions too.
  void visit_counts_of(ir::OpId op);
};

// The selection whose positions the elements of `v` follow, if v can be stored in the kernel of
// that selection: a Nonzero sink.
int find_compaction(const FunctionContext& cx, const RegionPlan& plan, ir::ValueId v);

}  // namespace cinch::codegen
