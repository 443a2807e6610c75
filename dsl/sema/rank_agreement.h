// Do all ranks take the same way to every collective of a `sync` body? A collective waits for every
// rank, so one under a condition that ranks may see differently would wait for ever.
#pragma once
#include <vector>

#include "dsl/sema/checked.h"

namespace cinch::sema {

/// A collective on which ranks may not agree, or a `sendrecv` whose receiver is surely the same.
struct Disagreement {
  enum class Kind : std::uint8_t {
    Way,       // ranks may not all reach it: `cause` is the condition
    Size,      // arrays may differ in size: `cause` is the array
    Receiver,  // all ranks send to one rank, which `cause` names
  };
  Span collective;
  BuiltinId operation{};
  Span cause;
  Kind kind = Kind::Way;
};

/// In source order, each collective once. Sound and incomplete: what is made of the gradient, of
/// `worker`, of draws that are not shared or of a state that is assigned such a value counts as
/// different until an `allreduce`, `allgather` or `broadcast` gave it to all.
std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& sync);

}  // namespace cinch::sema
