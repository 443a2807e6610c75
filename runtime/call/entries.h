// Which calls a program takes, and what calls do to states. A program with a `sync` body neither
// encodes nor decodes; other programs do not synchronise.
#pragma once
#include "runtime/core/error.h"
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

}  // namespace cinch::rt
