// Named operators of the first group: map, fill, len and floor_div.
#pragma once

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class MapOperators : Part {
 public:
  using Part::Part;

  /// `map(x, …, |a, …| e)`.
  Value map_call(const CallArgs& args);
  /// `fill(v, size)`.
  Value fill_call(const CallArgs& args);
  /// `len(x)`.
  Value len_call(const CallArgs& args);
  /// `floor_div(a, b)`.
  Value floor_div_call(const CallArgs& args);
};

}  // namespace cinch::sema
