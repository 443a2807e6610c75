// Expressions: dispatch by kind, leaves, blocks, element-wise operators.
#pragma once
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

}  // namespace cinch::lower
