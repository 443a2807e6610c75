// Names in a library.
#pragma once
#include <string>
#include <string_view>

namespace cinch::codegen {

/// Why the text cannot be the name of a library or of a compressor in one; empty if it can: an
/// identifier of C and C++ that is no word of theirs.
std::string why_no_name(std::string_view text);

/// "compressors_dgc", the table of a compressor; of the whole library "compressors_library".
std::string table_symbol(std::string_view library, std::string_view compressor);
std::string library_symbol(std::string_view library);
/// What stands in front of the names of a compressor's kernels of a level.
std::string kernel_prefix(std::string_view library, std::string_view compressor,
                          std::string_view arch);

}  // namespace cinch::codegen
