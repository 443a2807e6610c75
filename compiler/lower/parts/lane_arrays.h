// Small arrays inside a lambda over elements that are made, joined and stored into per element.
// Their sizes are constants, so an array of K is a matrix [L, K] over the L elements, and what goes
// where is a select over its columns.
#pragma once
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

class LaneArrays : public BodyPart {
 public:
  using BodyPart::BodyPart;
  // Scalars and vectors one after another, as `concat` and a table literal put them.
  Lowered join(const Expr& e, const std::vector<Lowered>& parts);
  // target[index] = value, each element into its own row.
  void assign(const Stmt& s);

 private:
  ValueId columns(HostExprId size);
};

}  // namespace cinch::lower
