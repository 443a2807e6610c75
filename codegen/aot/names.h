// Names in a library.
#pragma once
#include <string>
#include <string_view>

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

}  // namespace cinch::codegen
