// Which calls a program has: one with a `sync` body neither encodes nor decodes, and the others do
// not synchronise.
#pragma once
#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// May a session be called so? What decodes can be added to the output and has a finish, if it be
/// sum / world. Error: InvalidArgument.
Status check_call(const ProgramImage& image, EntryKind kind);

}  // namespace cinch::rt
