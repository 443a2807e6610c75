// Reading and storing at indices: gathers, slices, indexed assignment.
#pragma once
#include <string>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

class AccessLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower_index(const Expr& e);
  Lowered lower_slice(const Expr& e);
  void lower_assign_indexed(const Stmt& s);

 private:
  Lowered lower_index_of_lanes(const Expr& e, Lowered base, Lowered index);
  void check_slice_end(const Expr& e, HostExprId size);
  Lowered guard_index(const Lowered& active, Lowered& base, const Type& base_type, Lowered index,
                      const Type& index_type);
  // The message of a check at this place.
  std::string index_text(const Expr& e) const;
  std::string describe(ExprId array) const;
};

}  // namespace cinch::lower
