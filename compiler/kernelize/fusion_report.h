// What fusion did and did not: for `cinch explain --fusion`.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::codegen {

/// What a sweep goes over, in the program's pool: elements, or rows of so many columns.
struct SweepDomain {
  HostExprId rows, cols;  // cols: invalid where there are no rows
};

/// Two neighbouring sweeps of an entry, and why they are not one.
struct SweepsApart {
  std::string first, second;  // symbols of their kernels
  std::string why;            // "`w` is read before `a` changes"
  ir::Span at;                // of the value that the second waits for, if it is one
  /// Of both, where these are why.
  std::vector<SweepDomain> domains = {};
};

}  // namespace cinch::codegen
