// Compressors compiled ahead of time: from kernels to the files of a library that links like any
// other, without a compiler where it is used.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/kir/kir.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

/// A compressor of a library: its name is an identifier, of which there is one in the library.
struct LibraryProgram {
  std::string name;
  kir::KernelProgram kernels;
};

struct LibraryTarget {
  Target target;
  bool is_ptx = false;  // CUDA: PTX of that architecture instead of machine code
  std::uint32_t block_warps = 8;
};

struct LibraryRequest {
  std::string name;     // an identifier
  std::string made_by;  // the version of Cinch
  std::vector<LibraryProgram> programs;
  std::vector<LibraryTarget> targets;
  /// Told, from any thread but one at a time, how many parts are compiled.
  std::function<void(std::size_t done, std::size_t all)> progress;
};

/// The library's files by their names: libNAME.so and libNAME.a with code for x86-64 and GPUs, and,
/// where it is among the targets, libNAME-aarch64.a. Parts are compiled on all cores; the same
/// request gives the same bytes. Errors: Unavailable (no compiler library, no NVRTC),
/// InvalidArgument (an architecture that NVRTC does not know), Internal.
rt::Result<std::vector<NamedBytes>> make_library(const LibraryRequest& request);

}  // namespace cinch::codegen
