// Converts between paths and the names that editors use: `file:///home/me/mine.cinch`, with special
// bytes as %XX (RFC 3986).
#pragma once
#include <string>
#include <string_view>

namespace cinch::lsp {

/// The path of a `file:` URI. Any other URI stays as it is: a text that is not yet a file has one,
/// too.
std::string path_of_uri(std::string_view uri);
/// The `file:` URI of a path, which is made absolute; a URI stays as it is.
std::string uri_of_path(const std::string& path);

}  // namespace cinch::lsp
