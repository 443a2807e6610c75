// Small arrays inside a lambda over elements, which each element makes, joins and stores into.
// Their sizes are constants, so an array of K is a matrix [L, K] over the L elements, and a store
// is a select over its columns.
#pragma once
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

class LaneArrays : public BodyPart {
 public:
  using BodyPart::BodyPart;
  // Joins scalars and vectors, as `concat` and a table literal do.
  Lowered join(const Expr& e, const std::vector<Lowered>& parts);
  // target[index] = value, in each element's own row.
  void assign(const Stmt& s);

 private:
  ValueId columns(HostExprId size);
};

}  // namespace cinch::lower
