// What kernels compute beside the bytes that they move, in plain sweeps: a plain sweep loads, adds
// a little and stores. Measured on CPUs by tests/bench/cliffs.py, one thread, 2^20 elements, and
// rounded; a GPU's ratios differ. `explain` shows it, so that a cost that no byte counts is seen
// before a program runs.
#pragma once

#include <string>

#include "codegen/kir/kir.h"

namespace cinch::kir {

struct Work {
  double sweeps = 0;  // of all that takes longer than a plain operator, together
  std::string most;   // in words: what takes most of it
};

/// Of one launch over the kernel's domain.
Work work_of(const Kernel& kernel, const HostExprPool& exprs);

}  // namespace cinch::kir
