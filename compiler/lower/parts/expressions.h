// Expressions: dispatch by kind, leaves, blocks, element-wise operators.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
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

  // ---- lane_control.cpp
  Lowered lower_lane_if(const Expr& e);
  void lower_lane_while(const Stmt& s);
  void activate(Lowered condition);
};

}  // namespace cinch::lower
