// What a host does with an image whose code is never run: sessions on CPUs and GPUs are opened and
// called with kernels that only count, so that tables which say anything end in an error or in
// memory that is used within its bounds.
#pragma once
#include "runtime/image/image.h"

namespace cinch::fuzz {

/// Aborts where a promise is broken.
void use_image(const rt::ProgramImage& image);

}  // namespace cinch::fuzz
