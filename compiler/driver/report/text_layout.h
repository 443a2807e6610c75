// Text for people in lines of a given width. Characters are counted, not bytes of UTF-8.
#pragma once
#include <cstddef>
#include <string>

namespace cinch::driver {

std::size_t num_characters(const std::string& text);

/// Pads `text` with blanks to `width` characters.
std::string padded(const std::string& text, std::size_t width);

/// If `text` is longer than `width` characters, cuts it after the last word that leaves room for
/// "…".
std::string shortened(const std::string& text, std::size_t width);

/// Breaks `text` into lines of at most `width`, if words allow it, and indents lines by `indent`
/// blanks. The first line is assumed to begin at `indent`.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace cinch::driver
