// Collectives of `sync`, and the counts of what arrives.
#pragma once

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Collectives : Part {
 public:
  using Part::Part;

  /// Any collective.
  Value collective_call(BuiltinId id, const CallArgs& args);

 private:
  Value allreduce_call(const CallArgs& args);
  Value sendrecv_call(const CallArgs& args);
  /// `index`: of `given`.
  bool is_counted_vector(const Value& x);
  Value counted_collective(BuiltinId id, const Value& x, ExprId to, Span span);
  Value per_rank_call(BuiltinId id, const CallArgs& args);
};

}  // namespace cinch::sema
