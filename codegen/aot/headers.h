// Files that accompany a library: headers, and files for build systems.
#pragma once
#include <string>
#include <vector>

#include "codegen/jit/clang_jit.h"
#include "runtime/core/program_info.h"

namespace cinch::codegen {

struct LibraryText {
  std::string name;
  std::string version;  // of Cinch
  struct Compressor {
    std::string name;
    const rt::ProgramInfo* info;
  };
  std::vector<Compressor> compressors;
};

/// NAME.h (C11, C++20), NAME.hpp, NAMEConfig.cmake, NAME.pc.
std::vector<NamedBytes> make_headers(const LibraryText& library);

}  // namespace cinch::codegen
