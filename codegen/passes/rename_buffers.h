// Buffers that become one, and those that nothing names any more.
#pragma once
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Everything that names buffer b names to[b] from now on; then buffers that were renamed away are
/// dropped and the rest are numbered anew, in order.
void rename_buffers(kir::KernelProgram& program, const std::vector<rt::BufferIndex>& to);

}  // namespace cinch::codegen
