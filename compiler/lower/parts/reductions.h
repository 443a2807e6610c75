// Reductions: each becomes one `reduce` if possible; an empty one has the language's value.
#pragma once
#include <optional>
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

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
