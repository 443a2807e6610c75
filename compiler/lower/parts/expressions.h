// Expressions: dispatch by kind, leaves, blocks, element-wise operators.
#pragma once
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

}  // namespace cinch::lower
