// Random well-typed IR programs for tests of kernelize. Every operator kind that has kernels can
// occur anywhere, with valid operands: indices are in range, indices of scatters unique, sizes
// positive if n is. A seed gives the same program everywhere.
#pragma once
#include <map>
#include <string>

#include "compiler/ir/ir.h"

namespace cinch::codegen {

struct RandomIrOptions {
  std::uint32_t seed = 0;
  bool needs_passes = false;  // may use operators that passes expand: top_k, orthonormalize …
};

/// A program with encode, decode, states and their initial values.
ir::Program random_ir(const RandomIrOptions& options);

/// How often each operator kind and each scalar operation occurs.
using IrCoverage = std::map<std::string, int>;
void add_coverage(const ir::Program& program, IrCoverage& coverage);

}  // namespace cinch::codegen
