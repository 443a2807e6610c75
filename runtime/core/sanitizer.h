// Tells whether this build uses AddressSanitizer (preset `asan`). If so, kernels are instrumented,
// too, and their memory is laid out so that the sanitizer sees each byte outside.
#pragma once

namespace cinch {

#if defined(__SANITIZE_ADDRESS__)
#define CINCH_HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CINCH_HAS_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef CINCH_HAS_ADDRESS_SANITIZER
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace cinch

// For a function that calls kernels: before each call by address, -fsanitize=function reads two
// words before the code, which loaded machine code may not have (nor any memory there, if it begins
// a page).
#if defined(__clang__)
#define CINCH_CALLS_KERNELS __attribute__((no_sanitize("function")))
#else
#define CINCH_CALLS_KERNELS
#endif
