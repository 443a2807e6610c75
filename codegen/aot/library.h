// Compressors compiled ahead of time: turns kernels into the files of a library that links like any
// other, without a compiler where it is used.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/kir/kir.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

/// A compressor of a library. Its name is an identifier, unique in the library.
struct LibraryProgram {
  std::string name;
  kir::KernelProgram kernels;
  std::optional<kir::KernelProgram> carrier = {};  // of its sums (rt::CarrierKind::Program)
};

/// The source of a library's compressors. Each program is prepared once, several at a time and on
/// any thread. Then programs are taken one at a time, in ascending order. What take() does, prints
/// or throws does not depend on the order of preparation.
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
  /// Called with the number of compiled parts: from any thread, but one call at a time, and never
  /// while a program is taken.
  std::function<void(std::size_t done, std::size_t all)> progress;
};

struct Library {
  std::vector<LibraryProgram> programs;  // in the order in which they were taken
  std::vector<NamedBytes> files;         // sorted by name
};

/// Makes libNAME.so and libNAME.a with code for x86-64 and GPUs, and libNAME-aarch64.a if that is
/// among the targets. Programs are prepared and compiled on all cores; the same request gives the
/// same bytes. Errors: Unavailable (no compiler library, no NVRTC), InvalidArgument (an
/// architecture that NVRTC does not know), Internal. Passes on what take() of a program threw,
/// whatever other errors there are.
rt::Result<Library> make_library(const LibraryRequest& request, LibraryPrograms& programs);

}  // namespace cinch::codegen
