// Checks that a ProgramImage is well formed before anything runs it: images come from files. Gives
// the first fault found.
#pragma once
#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// Steps may nest this deep (if in while in for …).
inline constexpr int kMaxStepDepth = 64;
/// Most buffers, kernels, steps of an entry, states, … that an image has, and most formulas.
inline constexpr std::size_t kMaxImageParts = 16384, kMaxImageFormulas = 65536;

/// Ok where all that a host does with the image's tables stays within them, whatever they say:
/// every index is in range, every formula exists, has the type its place asks for and no count that
/// is not known there; widths, roles and sizes that are fixed make sense; every entry lists each
/// buffer that its steps name once and has only those that its call binds, of which it writes none
/// that is read only; every step has what its kind needs. Errors: CorruptFile, naming the place
/// ("kernel 2 (encode1): num_groups is no integer formula"). What formulas give is looked at when
/// they are evaluated (buffer_size.h). The binary is code and believed: a GPU's has an end.
Status validate_image(const ProgramImage& image);

bool is_gpu_image(const ProgramImage& image);

}  // namespace cinch::rt
