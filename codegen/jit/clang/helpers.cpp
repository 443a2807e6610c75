// Includes the output of make_helpers in this library.
#include "codegen/jit/clang/stages.h"

// name: a symbol; file: in the folder that the assembler searches. A zero byte follows.
#define CINCH_FILE(name, file)                                                        \
  __asm__(".section .rodata\n.balign 16\n.globl " #name "\n.hidden " #name "\n" #name \
          ":\n.incbin \"" file "\"\n" #name "End:\n.byte 0\n.previous\n");            \
  extern const char name[] __attribute__((visibility("hidden")));                     \
  extern const char name##End[] __attribute__((visibility("hidden")));

extern "C" {
CINCH_FILE(kCinchHelpersV1, "helpers-x86-64.o")
CINCH_FILE(kCinchHelpersV3, "helpers-x86-64-v3.o")
CINCH_FILE(kCinchHelpersV4, "helpers-x86-64-v4.o")
CINCH_FILE(kCinchPreludeV1, "prelude-x86-64.pch")
CINCH_FILE(kCinchPreludeV3, "prelude-x86-64-v3.pch")
CINCH_FILE(kCinchPreludeV4, "prelude-x86-64-v4.pch")
CINCH_FILE(kCinchHelpersDigest, "helpers-digest")
CINCH_FILE(kCinchHelpersClang, "helpers-clang")
}

namespace cinch::clang_backend {

const char* helpers_digest() {
  return clang_version() == kCinchHelpersClang ? kCinchHelpersDigest : "";
}

std::string_view helpers_object(std::string_view cpu) {
  if (cpu == "x86-64") return {kCinchHelpersV1, kCinchHelpersV1End};
  if (cpu == "x86-64-v3") return {kCinchHelpersV3, kCinchHelpersV3End};
  if (cpu == "x86-64-v4") return {kCinchHelpersV4, kCinchHelpersV4End};
  return {};
}

std::string_view precompiled_prelude(std::string_view cpu) {
  if (cpu == "x86-64") return {kCinchPreludeV1, kCinchPreludeV1End};
  if (cpu == "x86-64-v3") return {kCinchPreludeV3, kCinchPreludeV3End};
  if (cpu == "x86-64-v4") return {kCinchPreludeV4, kCinchPreludeV4End};
  return {};
}

}  // namespace cinch::clang_backend
