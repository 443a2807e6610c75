// The parts' view of the whole.
#include "dsl/sema/elaboration/part.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

Part::Part(Elaboration& all)
    : all_(all),
      module_(all.module),
      reporter_(all.reporter),
      out_(all.out),
      mode_(all.mode),
      env_(all.env),
      sizes_(all.sizes),
      prover_(all.sizes.prover()),
      types_(all.types),
      build_(all.build),
      text_(all.text),
      conversions_(all.conversions) {}

}  // namespace cinch::sema
