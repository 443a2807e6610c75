// Text for people in lines of a given width. Characters are counted, not bytes of UTF-8.
#pragma once
#include <cstddef>
#include <string>

namespace cinch::driver {

std::size_t num_characters(const std::string& text);

/// `text`, with blanks behind it up to `width` characters.
std::string padded(const std::string& text, std::size_t width);

/// `text`, ended with "…" behind the last word that leaves room for it where it is longer than
/// `width` characters.
std::string shortened(const std::string& text, std::size_t width);

/// `text`, with "…" instead of what is between its beginning and its end where it is longer than
/// `width` characters: names that differ at either end stay apart.
std::string shortened_in_middle(const std::string& text, std::size_t width);

/// `text` with line ends and `indent` blanks between words, such that no line is longer than
/// `width` where words allow it. The first line is taken to begin at `indent`.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace cinch::driver
