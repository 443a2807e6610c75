// Look-ups in a name index; name_walker.cpp makes it.
#include "compiler/lsp/name_index.h"

#include <algorithm>

namespace cinch::lsp {

namespace {

bool touches(Span span, std::uint32_t offset) {
  return span.begin <= offset && offset <= span.end;
}

}  // namespace

const Declaration* NameIndex::find(Span name) const {
  const auto at =
      std::ranges::find(declarations, name, [](const Declaration& decl) { return decl.name.span; });
  return at == declarations.end() ? nullptr : &*at;
}

std::vector<NameUse> NameIndex::uses_at(std::uint32_t offset) const {
  std::vector<NameUse> found;
  std::ranges::copy_if(uses, std::back_inserter(found),
                       [&](const NameUse& use) { return touches(use.span, offset); });
  // If two uses meet, takes the later one. (A name before a point and the one after it never meet.)
  if (found.size() > 1 && found.front().span != found.back().span) {
    std::erase_if(found, [&](const NameUse& use) { return use.span.begin != offset; });
  }
  return found;
}

const WordUse* NameIndex::word_at(std::uint32_t offset) const {
  const auto at =
      std::ranges::find_if(words, [&](const WordUse& word) { return touches(word.span, offset); });
  return at == words.end() ? nullptr : &*at;
}

}  // namespace cinch::lsp
