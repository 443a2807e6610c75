// Halves of UTF-16 pairs that stand alone. JSON can name them, and editors send them while somebody
// types; UTF-8, in which documents are kept, has none.
#pragma once
#include <string>

namespace cinch::lsp {

/// The JSON text with U+FFFD for each such half, be it an escape (`\ud83d`) or three bytes. Both
/// are one UTF-16 unit, so that positions stay.
std::string without_lone_surrogates(std::string json);

}  // namespace cinch::lsp
