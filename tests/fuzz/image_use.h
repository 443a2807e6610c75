// Uses an image as a host does, without running its code: opens sessions on CPUs and GPUs and calls
// them with kernels that only count. Tables with any contents must lead to an error, or to memory
// that is used within its bounds.
#pragma once
#include "runtime/image/image.h"

namespace cinch::fuzz {

/// Aborts if a promise is broken.
void use_image(const rt::ProgramImage& image);

}  // namespace cinch::fuzz
