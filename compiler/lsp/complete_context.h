// Decides, from the tokens before a place, what may follow there. For completion, while the text is
// seldom a whole program.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::lsp {

enum class PlaceKind : std::uint8_t {
  Nothing,       // a comment, a string, or a new name
  Declarations,  // of a file
  Items,         // of a compressor
  WireEntries,
  WireFields,  // of the payload that an `encode` makes
  Expression,
  Statement,  // or an expression
  Type,
  Member,  // after `base.`
  Import,
  Claims,
};

struct PlaceContext {
  PlaceKind kind = PlaceKind::Nothing;
  std::string base;               // Member: the name before the point
  std::vector<std::string> path;  // Import: the words of `std.family.` so far
  std::string callee;             // if an argument may begin here: the name before the bracket
};

/// Ignores a word that ends at the offset: it is the one being completed.
PlaceContext place_at(std::string_view text, std::uint32_t offset);

}  // namespace cinch::lsp
