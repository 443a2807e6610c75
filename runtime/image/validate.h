// Checks that a ProgramImage is well formed before anything runs it: images come from files. Gives
// the first fault found.
#pragma once
#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// Steps may nest this deep (if in while in for …).
inline constexpr int kMaxStepDepth = 64;

/// Ok where every index is in range, every formula exists and has the type its place asks for,
/// widths and roles make sense, and every step has what its kind needs. Errors: CorruptFile, naming
/// the place ("kernel 2 (encode1): num_groups is no integer formula"). Of the binary only its
/// presence is checked.
Status validate_image(const ProgramImage& image);

}  // namespace cinch::rt
