// Scans and sorts. Inside a lambda they run along the rows of a matrix that has one row per
// element.
#pragma once
#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

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
