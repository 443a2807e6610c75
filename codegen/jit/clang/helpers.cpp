// The objects that make_helpers wrote, as part of this library.
#include "codegen/jit/clang/stages.h"

// name: a symbol; file: in the folder that the assembler is told to search.
#define CINCH_OBJECT(name, file)                                                      \
  __asm__(".section .rodata\n.balign 16\n.globl " #name "\n.hidden " #name "\n" #name \
          ":\n.incbin \"" file "\"\n" #name "End:\n.previous\n");                     \
  extern const char name[] __attribute__((visibility("hidden")));                     \
  extern const char name##End[] __attribute__((visibility("hidden")));

extern "C" {
CINCH_OBJECT(kCinchHelpersV1, "helpers-x86-64.o")
CINCH_OBJECT(kCinchHelpersV3, "helpers-x86-64-v3.o")
CINCH_OBJECT(kCinchHelpersV4, "helpers-x86-64-v4.o")
CINCH_OBJECT(kCinchHelpersDigest, "helpers-digest")
}

namespace cinch::clang_backend {

std::string_view helpers_object(std::string_view cpu) {
  if (cpu == "x86-64") return {kCinchHelpersV1, kCinchHelpersV1End};
  if (cpu == "x86-64-v3") return {kCinchHelpersV3, kCinchHelpersV3End};
  if (cpu == "x86-64-v4") return {kCinchHelpersV4, kCinchHelpersV4End};
  return {};
}

}  // namespace cinch::clang_backend
