// Kernels compute with SSE and AVX alone, by MXCSR. Compilers and libraries of C use the x87, too,
// where an exception that is not masked ends the process.
#include "runtime/core/numbers/floats.h"

#include <immintrin.h>

namespace cinch::rt {
namespace {

constexpr std::uint32_t kDefaultMxcsr = 0x1f80;  // all exceptions masked, nearest, no DAZ, no FTZ
constexpr std::uint16_t kDefaultX87 = 0x37f;     // all exceptions masked, nearest, 64 bits

}  // namespace

DefaultFloatEnvironment::DefaultFloatEnvironment() : saved_(_mm_getcsr()) {
  if (saved_ != kDefaultMxcsr) _mm_setcsr(kDefaultMxcsr);
  asm volatile("fnstcw %0" : "=m"(saved_x87_));
  if (saved_x87_ != kDefaultX87) asm volatile("fldcw %0" : : "m"(kDefaultX87));
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() {
  _mm_setcsr(saved_);
  // A pending exception would trap as soon as it is no longer masked.
  if (saved_x87_ != kDefaultX87) asm volatile("fnclex\n\tfldcw %0" : : "m"(saved_x87_));
}

}  // namespace cinch::rt
