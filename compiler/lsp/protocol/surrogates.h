// Replaces unpaired halves of UTF-16 pairs. JSON can contain them, and editors send them while
// somebody types; UTF-8, in which documents are kept, has none.
#pragma once
#include <string>

namespace cinch::lsp {

/// The JSON text with U+FFFD for each such half, whether it is an escape (`\ud83d`) or three bytes.
/// Both are one UTF-16 unit, so that positions stay.
std::string without_lone_surrogates(std::string json);

}  // namespace cinch::lsp
