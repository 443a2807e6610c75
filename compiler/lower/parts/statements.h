// Statements, and blocks that end in a payload.
#pragma once
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

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
