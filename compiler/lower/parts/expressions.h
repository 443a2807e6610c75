// Expressions: dispatch by kind, leaves, blocks, element-wise operators.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {
class ExpressionLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower(const Expr& e);

 private:
  Lowered lower_table(const Expr& e);
  Lowered lower_var(const Expr& e);
  Lowered lower_block(const Expr& e);
  Lowered lower_elementwise(const Expr& e, OpKind kind);
};

// Statements, and blocks that end in a payload.

class StatementLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  void lower(const Stmt& s);
  // A Block ending in a WireLiteral: its fields.
  std::vector<ValueId> lower_payload(ExprId id);

 private:
  void lower_assert(const Stmt& s);
  void lower_let_payload(const Stmt& s);
  void assign(const Stmt& s);
};

// Control flow. A branch or loop body is a region. What it assigns becomes results of the if_else
// or loop-carried values, so that the function is in SSA form. Inside a lambda over elements, a
// condition that differs between lanes becomes a select, and a loop runs while any lane is active.

class ControlLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower_if(const Expr& e);
  void lower_for(const Stmt& s);
  void lower_while(const Stmt& s);

 private:
  // What a branch or loop changes, in the order in which regions yield it.
  struct Carried {
    std::vector<VarId> vars;
    std::vector<std::uint32_t> states;
    std::map<DrawSpace, LoopDraws> draws;  // of a `while`, which then counts its rounds
  };
  Carried carried_of(const std::vector<ExprId>& roots);
  Carried carried_of_while(const Stmt& s);
  std::vector<ValueId> current(const Carried& carried);
  void set_current(const Carried& carried, const std::vector<ValueId>& values);
  std::vector<ValueId> enter_args(const Carried& carried, const std::vector<ValueId>& inits);
  // Every round has draws of its own.
  void number_round(const std::map<DrawSpace, LoopDraws>& draws, ValueId round);
  void number_after(const std::map<DrawSpace, LoopDraws>& draws,
                    const std::map<DrawSpace, HostExprId>& before);
  // Lowers one branch or loop body as a region, which yields the result of `body`. The environment
  // is restored afterwards.
  RegionId lower_region(const Carried& carried, const std::function<std::vector<ValueId>()>& body);
  std::vector<ValueId> branch_results(ExprId branch, const Carried& carried, const Type* type);
  std::vector<ValueId> loop_body_results(ExprId body, const Carried& carried);

  // ---- control.cpp
  Lowered lower_lane_if(const Expr& e);
  void lower_lane_while(const Stmt& s);
  void activate(Lowered condition);
};

// Lowers named operators: dispatches by group; fill, len, draws and collectives.

// Operators that select, pack or move elements, and those on matrices.

class MoveLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower(const Expr& e);
  /// Ascending places where the mask is true; `len` is their count, entry `count` of the program's.
  ValueId select_counted(ValueId mask, std::uint32_t count, HostExprId len, HostExprId limit);

 private:
  Lowered lower_plain(const Expr& e, OpKind kind);  // keeps operands and type as they are
  Lowered lower_filter(const Expr& e);
  Lowered lower_concat(const Expr& e);
  Lowered lower_histogram(const Expr& e);
  Lowered lower_reshape(const Expr& e);
  Lowered lower_product(const Expr& e);
  Lowered lower_hadamard(const Expr& e);
  ValueId nonzero(const Expr& e, ValueId mask, HostExprId len);
  Lowered lower_pack(const Expr& e);
  Lowered lower_scatter(const Expr& e);
  Lowered lower_scatter_keep(const Expr& e);
  Lowered lower_scatter_join(const Expr& e);
  ValueId scatter_index(const Expr& e, bool must_be_unique);
};

class BuiltinLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower(const Expr& e);

 private:
  Lowered lower_fill(const Expr& e);
  Lowered lower_len(const Expr& e);
  Lowered lower_random(const Expr& e);
  Lowered lower_stochastic_round(const Expr& e);
  ir::Attrs draw_attrs(const Expr& e) const;
  std::vector<ValueId> draw_operands(const Expr& e, std::vector<ValueId> operands);
  Lowered lower_collective(const Expr& e);
  Lowered lower_counted_collective(const Expr& e);
  ValueId receiver(const Expr& e);  // of a sendrecv
};

// Reductions: each becomes one `reduce` if possible; an empty one has the language's value.

// Lambdas. A lambda over elements is lowered once, on arrays of all elements ("lanes", see
// body_part.h). A lambda over pairs becomes a Combiner.

class LambdaLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower_map(const Expr& e);
  ir::CombinerId lower_combiner(ExprId lambda, DType dtype);

 private:
  Lowered lower_map_in_lanes(const Expr& e, const Expr& lambda);
  std::optional<ScalarOp> plain_combiner(const Expr& lambda) const;
};

class ReduceLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower(const Expr& e);

 private:
  struct Reduction;
  Reduction prepare(const Expr& e, const std::vector<ExprId>& arrays, ExprId mask);
  std::vector<ValueId> emit_reduce(const Reduction& r, std::vector<ValueId> values,
                                   std::vector<ValueId> inits, ir::CombinerId combiner);
  ValueId reduce_op(const Reduction& r, ValueId value, ScalarOp op, ValueId init);
  ValueId reduce_count(const Reduction& r, DType dtype);
  ValueId reduce_std(const Reduction& r, DType dtype);
  ValueId reduce_argmax(const Reduction& r);
  ir::CombinerId moments_combiner(DType dtype);
  ir::CombinerId argmax_combiner(DType dtype);
  ValueId positions_along(const Reduction& r);
  ValueId lowest(DType dtype);
  ValueId highest(DType dtype);
  ValueId reduced(const Expr& e, const Reduction& r);
  ValueId reduced_magnitudes(const Expr& e, const Reduction& r);
};

// Scans and sorts. Inside a lambda they run along the rows of a matrix that has one row per
// element.

class ScanSortLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower_scan(const Expr& e);
  Lowered lower_sort(const Expr& e);

 private:
  ValueId order_of(ValueId keys, const ir::Attrs& attrs);
  Lowered sorted_values(const Expr& e, ValueId order, std::uint8_t lanes, int axis);
};

}  // namespace cinch::lower
