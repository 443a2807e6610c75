// What a pass has left without a use.
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Drops instructions that compute or draw what nobody uses, and numbers the values anew, in order.
/// Loads stay: a kernel declares what it reads.
void drop_unused(kir::Kernel& kernel);

}  // namespace cinch::codegen
