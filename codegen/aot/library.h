// Compressors compiled ahead of time: turns kernels into the files of a library that links like any
// other, without a compiler where it is used.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/kir/kir.h"
#include "runtime/core/error.h"
#include "runtime/core/program_info.h"

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

// The texts of a library: names of its symbols, tables (runtime/c_api/cinch_library.h) as C++, and
// the files that accompany it: headers, and files for build systems.

/// Why the text cannot be the name of a compressor in a library; empty if it can. A name is an
/// identifier of C and C++, but neither a keyword nor a common macro.
std::string why_no_name(std::string_view text);
/// The same for the library itself; its headers and files have this name.
std::string why_no_library_name(std::string_view text);

/// The symbol of a compressor's table, "compressors_dgc"; for the whole library
/// "compressors_library".
std::string table_symbol(std::string_view library, std::string_view compressor);
std::string library_symbol(std::string_view library);
/// The symbol of another object of a compressor; never that of a table.
std::string own_symbol(std::string_view library, std::string_view what,
                       std::string_view compressor);
/// The prefix of the kernels of a compressor for one level.
std::string kernel_prefix(std::string_view library, std::string_view compressor,
                          std::string_view arch);

struct CpuTable {
  std::string level;
  std::vector<std::string> kernels;  // symbols, by kernel index
};
struct GpuTable {
  std::string arch, image_symbol;
  bool is_ptx = false;
  std::size_t image_size = 0;
};
struct CompressorTables {
  std::string name, image_symbol;
  std::size_t image_size = 0;
  std::vector<CpuTable> cpu;
  std::vector<GpuTable> gpu;
};

/// One translation unit without includes. Defines the exported tables of each compressor and of the
/// library.
std::string tables_text(const std::string& library, const std::string& made_by,
                        const std::vector<CompressorTables>& compressors);

/// For a shared library only: the function by which its tables are found when it is opened at run
/// time, and the functions that compilers call to copy memory, so that it needs no other library.
std::string shared_part_text(const std::string& library);
/// The symbol of that function.
inline constexpr const char* kFindSymbol = "cinch_compiled_library";

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
