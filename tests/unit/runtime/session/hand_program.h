// The image around hand_kernels.cpp.
#pragma once
#include "runtime/image/image.h"

namespace cinch::rt {

struct HandOptions {
  bool has_init = false, has_decode_add = false, has_finish = false;
};

/// compressor hand(tau: f32 = 0.5 in (0, 4]) { state residual; wire { count m <= n, index: [u32;
/// m], value: [f32; m] } … } A gradient value of 12345 fails the check "no 12345".
ProgramImage hand_image(HandOptions options = {});

}  // namespace cinch::rt
