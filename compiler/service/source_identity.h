// Identifies a build of the compiler; part of every key of the cache.
#pragma once

namespace cinch::service {

// 64 hexadecimal digits: a digest of all sources that decide what a program compiles to, the
// version of LLVM and the sanitizers of the build. source_identity.cmake writes it.
const char* source_identity();

}  // namespace cinch::service
