// Checks that all ranks reach the same collectives of a `sync` body. A collective waits for every
// rank. If ranks disagree about the condition around it, they would wait for ever.
#pragma once
#include <vector>

#include "dsl/sema/checked.h"

namespace cinch::sema {

/// A collective on which ranks may disagree, or a `sendrecv` to the same rank from all ranks.
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

/// Returns disagreements in source order, one for each collective. Sound but incomplete: a value
/// may differ if it depends on the gradient, on `worker`, on draws that are not shared, or on a
/// state that was assigned such a value, until an `allreduce`, `allgather` or `broadcast` gives it
/// to all.
std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& sync);

}  // namespace cinch::sema
