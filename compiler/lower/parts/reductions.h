// Reductions: each becomes one `reduce` if possible; an empty one has the language's value.
#pragma once
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

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

}  // namespace cinch::lower
