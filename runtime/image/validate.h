// Checks that a ProgramImage is well formed before anything runs it: images come from files.
// Reports the first fault.
#pragma once
#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// Steps may nest this deep (if in while in for …).
inline constexpr int kMaxStepDepth = 64;
/// The most buffers, kernels, steps of an entry, states, … of an image, and the most formulas.
inline constexpr std::size_t kMaxImageParts = 16384, kMaxImageFormulas = 65536;

/// Ok if a host that uses the image's tables stays within them, whatever they say. Every index is
/// in range. Every formula exists, has the type that its place needs, and uses only counts that are
/// known there. Fixed widths, roles and sizes are valid. Every entry lists each buffer of its steps
/// once, has only buffers that its call binds, and writes none that is read only. Every step has
/// what its kind needs. Results of formulas are checked when they are evaluated (image.h).
/// The binary is code and trusted; that of a GPU has an end. Errors: CorruptFile, naming the place
/// ("kernel 2 (encode1): num_groups is no integer formula").
Status validate_image(const ProgramImage& image);

bool is_gpu_image(const ProgramImage& image);

}  // namespace cinch::rt
