// Removes instructions that a pass has left without a use.
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Drops computing and drawing instructions whose results are unused, and renumbers values in
/// order. Loads stay: a kernel declares what it reads.
void drop_unused(kir::Kernel& kernel);

}  // namespace cinch::codegen
