// Filters and sorts: results of counted length, and what is known of their indices.
#pragma once

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Selections : Part {
 public:
  using Part::Part;

  /// `filter` and `nonzero`.
  Value filter_call(BuiltinId id, const CallArgs& args);
  /// `sort`, `argsort` and `sort_by_key`.
  Value sort_call(BuiltinId id, const CallArgs& args);
  /// `top_k` and `kth_largest`.
  Value top_k_call(BuiltinId id, const CallArgs& args);

 private:
  Value top_k_of(BuiltinId id, const CallArgs& args, const Value& x, HostExprId k);
};

}  // namespace cinch::sema
