// Lowers named operators: dispatches by group; fill, len, draws and collectives.
#pragma once
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

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

}  // namespace cinch::lower
