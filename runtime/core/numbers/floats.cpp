// On x86 only MXCSR matters: kernels compute with SSE and AVX alone.
#include "runtime/core/numbers/floats.h"

#include <immintrin.h>

namespace cinch::rt {
namespace {

constexpr std::uint32_t kDefaultMxcsr = 0x1f80;  // all exceptions masked, nearest, no DAZ, no FTZ

}  // namespace

DefaultFloatEnvironment::DefaultFloatEnvironment() : saved_(_mm_getcsr()) {
  if (saved_ != kDefaultMxcsr) _mm_setcsr(kDefaultMxcsr);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() {
  _mm_setcsr(saved_);
}

}  // namespace cinch::rt
