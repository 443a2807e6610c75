// What the C++ library's and LLVM's archives call of a glibc that is newer than 2.34, with which
// installed files run.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

/// Of glibc 2.36.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) std::abort();
  return bits;
}
