// Do all ranks take the same way to every collective of a `sync` body? A collective waits for every
// rank, so one under a condition that ranks may see differently would wait for ever.
#pragma once
#include <vector>

#include "dsl/sema/checked.h"

namespace cinch::sema {

/// A collective that ranks may reach differently, or with arrays of different sizes.
struct Disagreement {
  Span collective;
  BuiltinId operation{};
  Span cause;            // the condition, or the array
  bool is_size = false;  // the array's size differs; else the way differs
};

/// In source order, each collective once. Sound and incomplete: what is made of the gradient, of
/// `worker`, of draws that are not shared or of a state that is assigned such a value counts as
/// different until an `allreduce`, `allgather` or `broadcast` gave it to all.
std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& sync);

}  // namespace cinch::sema
