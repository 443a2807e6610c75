# Writes OUT, a C++ file with a digest of the sources that decide what a program compiles to:
#   cmake -DROOT=… -DOUT=… -DEXTRA=… -P source_identity.cmake
# The file is touched only when the digest changes.
set(digests "${EXTRA}")
foreach(folder IN ITEMS dsl compiler codegen runtime/core runtime/image)
  file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE ${ROOT} ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.def)
  list(SORT files)
  foreach(file IN LISTS files)
    file(SHA256 ${ROOT}/${file} digest)
    string(APPEND digests " ${file} ${digest}")
  endforeach()
endforeach()
string(SHA256 identity "${digests}")
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[// Written by source_identity.cmake.
#include "compiler/service/source_identity.h"

namespace cinch::service {
const char* source_identity() {
  return "@identity@";
}
}  // namespace cinch::service
]])
