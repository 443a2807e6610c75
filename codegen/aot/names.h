// Names in a library.
#pragma once
#include <string>
#include <string_view>

namespace cinch::codegen {

/// Why the text cannot be the name of a compressor in a library; empty if it can: an identifier of
/// C and C++ that is neither a word of theirs nor a macro that everybody has.
std::string why_no_name(std::string_view text);
/// The same of the library itself, whose headers and files have its name.
std::string why_no_library_name(std::string_view text);

/// "compressors_dgc", the table of a compressor; of the whole library "compressors_library".
std::string table_symbol(std::string_view library, std::string_view compressor);
std::string library_symbol(std::string_view library);
/// Of what the library has for a compressor beside its table; no table has such a name.
std::string own_symbol(std::string_view library, std::string_view what,
                       std::string_view compressor);
/// What stands in front of the names of a compressor's kernels of a level.
std::string kernel_prefix(std::string_view library, std::string_view compressor,
                          std::string_view arch);

}  // namespace cinch::codegen
