// The texts of a library: names of its symbols, tables (runtime/c_api/cinch_library.h) as C++, and
// the files that accompany it: headers, and files for build systems.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/jit/clang_jit.h"
#include "runtime/core/program_info.h"

namespace cinch::codegen {

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
