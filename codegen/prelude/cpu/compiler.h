// compiler.h: what Cinch's own Clang gets on its command line, for any other Clang:
//   clang++ -std=c++20 -O3 -ffreestanding -c, on AArch64 with --target=aarch64-linux-gnu.

#pragma clang fp contract(off)
#if !defined(CINCH_LANES) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define CINCH_LANES 16
#elif !defined(CINCH_LANES) && defined(__AVX2__)
#define CINCH_LANES 8
#elif !defined(CINCH_LANES)
#define CINCH_LANES 4
#endif
