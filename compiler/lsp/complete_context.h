// What may stand at a place of a text, told by the tokens before it: for completion, where the text
// is seldom a whole program.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::lsp {

enum class PlaceKind : std::uint8_t {
  Nothing,       // a comment, a string, or a name that is about to be declared
  Declarations,  // of a file
  Items,         // of a compressor
  WireEntries,
  Expression,
  Statement,  // an expression, too
  Type,
  Member,  // behind `base.`
  Import,
  Claims,
};

struct PlaceContext {
  PlaceKind kind = PlaceKind::Nothing;
  std::string base;               // Member: the name before the point
  std::vector<std::string> path;  // Import: the words of `std.family.` so far
  std::string callee;             // where an argument may begin: the name before the bracket
};

/// A word that ends at the offset is what is being completed, and is left out of account.
PlaceContext place_at(std::string_view text, std::uint32_t offset);

}  // namespace cinch::lsp
