// What fusion did and what it could not do, for `cinch explain --fusion`.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::codegen {

/// The domain of a sweep, in the program's pool: elements, or rows of `cols` columns.
struct SweepDomain {
  HostExprId rows, cols;  // cols: invalid if the domain has no rows
};

/// Two neighbouring sweeps of an entry, and why they are not fused.
struct SweepsApart {
  std::string first, second;  // symbols of their kernels
  std::string why;            // "`w` is read before `a` changes"
  ir::Span at;                // of the value that the second sweep waits for, if there is one
  /// The domains of both, if they are the reason.
  std::vector<SweepDomain> domains = {};
};

}  // namespace cinch::codegen
