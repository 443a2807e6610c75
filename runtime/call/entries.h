// Which calls a program has: one with a `sync` body neither encodes nor decodes, and the others do
// not synchronise; and what calls do to states.
#pragma once
#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// May a session be called so? What decodes can be added to the output and has a finish, if it be
/// sum / world. A session that only decodes has neither encode nor sync, nor what uses states.
/// Error: InvalidArgument.
Status check_call(const ProgramImage& image, EntryKind kind, bool only_decodes);

/// May its states be read and written? Error: InvalidArgument.
Status check_holds_states(bool only_decodes);

/// Does a step leave nothing that its states could be taken back to? So where they change in place,
/// or in more calls of a step than one.
bool needs_copies_of_states(const ProgramImage& image);

}  // namespace cinch::rt
