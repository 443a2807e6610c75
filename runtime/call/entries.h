// Which calls a program takes, and what calls do to states. A program with a `sync` body neither
// encodes nor decodes; other programs do not synchronise.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// May a session make this call? A program that decodes can also add to the output, and has a
/// finish (the default is sum / world). A session that only decodes has no encode, no sync, and
/// nothing that uses states. Error: InvalidArgument.
Status check_call(const ProgramImage& image, EntryKind kind, bool only_decodes);

/// May a session's states be read and written? Error: InvalidArgument.
Status check_holds_states(bool only_decodes);

/// Must states be copied so that a step can be undone? Yes if they change in place, or in several
/// calls of a step.
bool needs_copies_of_states(const ProgramImage& image);

// Lists the collectives of a `sync` before it runs, if no value decides about them and their sizes
// follow from the tensor and the number of ranks.

/// One collective, the same on every rank.
struct SyncRound {
  CollectiveInfo collective;
  DType dtype = kF32;
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // input and output of CollectiveCall
};

/// True if no collective is in a branch or in a `while` or is routed (is_routed), and if neither
/// the number of rounds of loops nor any size depends on parameters or the step.
bool has_fixed_rounds(const ProgramImage& image);

/// The collectives in order, loops unrolled. Only for programs with fixed rounds. Errors: those of
/// formulas.
Result<std::vector<SyncRound>> sync_rounds(const ProgramImage& image, const HostEnv& env);

}  // namespace cinch::rt
