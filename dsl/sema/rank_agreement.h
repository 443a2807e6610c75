// Checks that all ranks reach the same collectives of a `sync` body, and end with the same update.
// A collective waits for every rank. If ranks disagree about the condition around it, they would
// wait for ever.
#pragma once
#include <vector>

#include "dsl/sema/checked.h"

namespace cinch::sema {

/// A collective on which ranks may disagree, a `sendrecv` to the same rank from all ranks, or an
/// update that differs.
struct Disagreement {
  enum class Kind : std::uint8_t {
    Way,       // ranks may not all reach it: `cause` is the condition
    Size,      // arrays may differ in size: `cause` is the array
    Receiver,  // all ranks send to one rank, which `cause` names
    Update,    // the update, `collective`, depends on what only this rank has: `cause`
  };
  Span collective;
  BuiltinId operation{};
  Span cause;
  Kind kind = Kind::Way;
};

/// Returns disagreements in source order, one for each collective. Sound but incomplete: a value
/// may differ if it depends on the gradient, on `worker`, on draws that are not shared, on shared
/// draws behind a loop whose bounds may differ, or on a state that was assigned such a value, until
/// an `allreduce`, `allgather` or `broadcast` gives it to all. Of an update that was made of what
/// one rank sent to another, nobody knows before it runs.
std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& sync);

/// The same of the update that `finish` makes of the sum, which all ranks have, and of the states,
/// which `encode` makes of this rank's gradient.
std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& encode,
                                             const Body& finish);

}  // namespace cinch::sema
