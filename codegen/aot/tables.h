// The tables of a library (runtime/c_api/cinch_library.h) as C++ text.
#pragma once
#include <string>
#include <vector>

namespace cinch::codegen {

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

}  // namespace cinch::codegen
