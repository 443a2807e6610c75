// Kernels over short rows. A chunk of rows goes through each section together: what is computed
// once for a row is computed for as many rows as a vector has lanes, and the packed elements of the
// chunk are packed at once. Row by row, both would take longer than the elements of a row of 16.
#pragma once
#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Do rows of the kernel go together? Their length is constant: 16, 32 or 64 elements. Between two
/// element sections there are only computations, and stores of one value for each row.
bool takes_rows_together(const CpuKernelFacts& facts);

}  // namespace cinch::codegen
