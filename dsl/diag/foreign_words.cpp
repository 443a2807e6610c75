// Finds words in the table of foreign words.
#include "dsl/diag/foreign_words.h"

#include <algorithm>
#include <array>

namespace cinch::dsl {
namespace {

constexpr std::array kTable{
#define FOREIGN_WORD(place, word, theirs, ours, why) \
  ForeignWord{ForeignPlace::place, word, theirs, ours, why},
#include "dsl/diag/foreign_words.def"
};

const ForeignWord* find(ForeignPlace place, std::string_view word) {
  const auto* const at = std::ranges::find_if(
      kTable, [&](const ForeignWord& row) { return row.place == place && row.word == word; });
  return at == kTable.end() ? nullptr : at;
}

std::string note_of(std::string_view ours, std::string_view why) {
  if (ours.empty()) return std::string(why);
  const std::string text = "write `" + std::string(ours) + "`";
  return why.empty() ? text : text + "; " + std::string(why);
}

}  // namespace

std::span<const ForeignWord> foreign_words() {
  return kTable;
}

std::string foreign_note(ForeignPlace place, std::string_view word) {
  const ForeignWord* const row = find(place, word);
  return row == nullptr ? std::string() : note_of(row->ours, row->why);
}

std::string foreign_note(ForeignPlace place, std::string_view word, const std::string& ours) {
  const ForeignWord* const row = find(place, word);
  return note_of(ours, row == nullptr ? std::string_view() : row->why);
}

void explain_word(Diagnostic& diag, ForeignPlace place, std::string_view word, Span span,
                  std::string_view nearest) {
  std::string note = foreign_note(place, word);
  if (note.empty()) {
    diag.suggest(span, std::string(nearest));
  } else {
    diag.note(std::move(note));
  }
}

}  // namespace cinch::dsl
