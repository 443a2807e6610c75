// What tells one build of the compiler from another: part of every key of the cache.
#pragma once

namespace cinch::service {

// 64 hexadecimal digits over all sources that decide what a program compiles to, the version of
// LLVM and the sanitizers of the build. Written by source_identity.cmake.
const char* source_identity();

}  // namespace cinch::service
