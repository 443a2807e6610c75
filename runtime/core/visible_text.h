// Text from outside, such as names of files, for people.
#pragma once
#include <string>
#include <string_view>

namespace cinch::rt {

/// `text` with control characters and marks of writing direction as "\x1b" or "\u202e", since a
/// terminal would obey them. So are bytes that belong to no character of UTF-8. Line ends and tabs
/// stay.
std::string visible_text(std::string_view text);

}  // namespace cinch::rt
