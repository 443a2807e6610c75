// Lambdas. A lambda over elements is lowered once, on arrays of all elements ("lanes", see
// body_part.h). A lambda over pairs becomes a Combiner.
#pragma once
#include <optional>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

class LambdaLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower_map(const Expr& e);
  ir::CombinerId lower_combiner(ExprId lambda, DType dtype);

 private:
  Lowered lower_map_in_lanes(const Expr& e, const Expr& lambda);
  std::optional<ScalarOp> plain_combiner(const Expr& lambda) const;
};

}  // namespace cinch::lower
