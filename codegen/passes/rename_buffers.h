// Merges buffers, and drops those that nothing uses any more.
#pragma once
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Replaces every use of buffer b by to[b]. Drops the replaced buffers, and renumbers the rest in
/// order.
void rename_buffers(kir::KernelProgram& program, const std::vector<rt::BufferIndex>& to);

}  // namespace cinch::codegen
