// Prints a kernel's loop over groups for rows that go beside one another: each lane of a vector
// works on a row of its own (prelude/cpu/beside.h). So what is the same for a row differs between
// lanes.
#pragma once

#include "codegen/emit/cpu/kernel/facts.h"

namespace cinch::codegen {

/// Continues the text `out`. `facts` is the kernel's; longest_rows_beside(facts) is not 0.
SourceWriter emit_rows_beside(const CpuKernelFacts& facts, SourceWriter out);

}  // namespace cinch::codegen
