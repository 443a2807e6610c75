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

/// Where the compressors of a library come from. A program is prepared once, several at a time and
/// on any thread. Then it is taken, one at a time and in ascending order: what take() does, prints
/// or throws is the same whichever was prepared first.
class LibraryPrograms {
 public:
  LibraryPrograms() = default;
  LibraryPrograms(const LibraryPrograms&) = delete;
  LibraryPrograms& operator=(const LibraryPrograms&) = delete;
  virtual ~LibraryPrograms() = default;
  virtual std::size_t count() const = 0;
  virtual void prepare(std::size_t index) = 0;
  virtual LibraryProgram take(std::size_t index) = 0;
};

struct LibraryTarget {
  Target target;
  bool is_ptx = false;  // CUDA: PTX of that architecture instead of machine code
  std::uint32_t block_warps = 8;
};

struct LibraryRequest {
  std::string name;     // an identifier
  std::string made_by;  // the version of Cinch
  std::vector<LibraryTarget> targets;
  /// Told how many parts are compiled: from any thread, but never while a program is taken or
  /// another thread tells.
  std::function<void(std::size_t done, std::size_t all)> progress;
};

struct Library {
  std::vector<LibraryProgram> programs;  // as they were taken
  std::vector<NamedBytes> files;         // by their names
};

/// The files are libNAME.so and libNAME.a with code for x86-64 and GPUs, and, where it is among the
/// targets, libNAME-aarch64.a. Programs are prepared and compiled on all cores; the same request
/// gives the same bytes. Errors: Unavailable (no compiler library, no NVRTC), InvalidArgument (an
/// architecture that NVRTC does not know), Internal. Throws what take() of a program threw,
/// whatever else went wrong.
rt::Result<Library> make_library(const LibraryRequest& request, LibraryPrograms& programs);

}  // namespace cinch::codegen
