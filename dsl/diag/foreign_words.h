// Words of NumPy, PyTorch and Python in a program: what is written in Cinch instead.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dsl/diag/diag.h"

namespace cinch::dsl {

/// Where the word stands; see foreign_words.def.
enum class ForeignPlace : std::uint8_t { Function, Name, Type, Argument, Member, Syntax };

struct ForeignWord {
  ForeignPlace place;
  std::string_view word, theirs, ours, why;
};

std::span<const ForeignWord> foreign_words();

/// "write `ours`; why" of the row; "" if the table has no such word.
std::string foreign_note(ForeignPlace place, std::string_view word);
/// "write `ours`", with the words of this program in place of the row's example.
std::string foreign_note(ForeignPlace place, std::string_view word, const std::string& ours);

/// Adds the note of the word, if it has one. Else suggests `nearest`, which may be empty: a known
/// foreign word is no misspelt other one.
void explain_word(Diagnostic& diag, ForeignPlace place, std::string_view word, Span span,
                  std::string_view nearest);

}  // namespace cinch::dsl
