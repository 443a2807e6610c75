// Files as editors name them: `file:///home/me/mine.cinch`, with bytes that are not plain as %XX
// (RFC 3986).
#pragma once
#include <string>
#include <string_view>

namespace cinch::lsp {

/// The path of a `file:` URI; any other URI as it is, as text that is no file yet has one, too.
std::string path_of_uri(std::string_view uri);
/// The `file:` URI of a path, which is made absolute; a URI as it is.
std::string uri_of_path(const std::string& path);

}  // namespace cinch::lsp
