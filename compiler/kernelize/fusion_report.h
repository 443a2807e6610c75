// What fusion did and did not: for `cinch explain --fusion`.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::codegen {

/// Two neighbouring sweeps of an entry, and why they are not one.
struct SweepsApart {
  std::string first, second;  // symbols of their kernels
  std::string why;            // "`w` is read before `a` changes"
  ir::Span at;                // of the value that the second waits for, if it is one
};

}  // namespace cinch::codegen
