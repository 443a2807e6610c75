// Random draws, and how they are numbered.
#pragma once

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class RandomDraws : Part {
 public:
  using Part::Part;

  /// An array of draws.
  Value random_call(BuiltinId id, const CallArgs& args);
  /// `stochastic_round(x)`.
  Value stochastic_round_call(const CallArgs& args);

 private:
  void number_draw(Expr& made, const CallArgs& args);
};

}  // namespace cinch::sema
