// Functions of glibc newer than 2.34 that the archives of the C++ library and LLVM call. With them
// installed files run on 2.34.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

/// Added in glibc 2.36.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) std::abort();
  return bits;
}
