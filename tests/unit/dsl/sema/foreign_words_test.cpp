// Every row of foreign_words.def: what NumPy and PyTorch say gets a note, and what the note says to
// write is accepted.
#include "dsl/diag/foreign_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "check_fixture.h"

namespace cinch::sema {
namespace {

using dsl::ForeignPlace;
using dsl::ForeignWord;
using testing::HasSubstr;

// The names that the table's examples use.
const char* const kNames =
    "let x = g\n"
    "let v = [1.0, 2.0, 3.0, 4.0] as f32\n"
    "let m = reshape(iota(12) as f32, 3, 4)\n"
    "let mask = g > 0.0\n"
    "let i = top_k(x, 3)\n"
    "let a = sum(x)\n"
    "let b = mean(x)\n"
    "let c = a > b\n"
    "let k = 3\n";

bool is_statement(std::string_view text) {
  return text.starts_with("let ") || text.starts_with("for ") || text.starts_with("if c:") ||
         text.starts_with("return ") || text.starts_with("def ");
}

Checked check_text(std::string_view text) {
  const std::string line(text);
  return check(in_encode(kNames + (is_statement(text) ? line : "let y = " + line)));
}

std::string all_notes(const Checked& checked) {
  std::string notes;
  for (const dsl::Diagnostic& diag : checked.sink->all()) {
    for (const dsl::Note& note : diag.notes) notes += note.text + "\n";
  }
  return notes;
}

// `axis: 0` of the note "write `axis: 0`".
std::string first_quoted(const std::string& text) {
  const std::size_t begin = text.find('`'), end = text.find('`', begin + 1);
  return begin == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

TEST(ForeignWords, EachRowIsExplained) {
  for (const ForeignWord& row : dsl::foreign_words()) {
    const Checked checked = check_text(row.theirs);
    EXPECT_TRUE(checked.sink->has_errors()) << row.theirs;
    const std::string notes = all_notes(checked);
    // A note may show only the part that differs.
    const bool is_whole = contains(notes, "write `" + std::string(row.ours) + "`");
    const bool is_part =
        contains(notes, "write `") && contains(std::string(row.ours), first_quoted(notes));
    EXPECT_TRUE(row.ours.empty() || is_whole || is_part) << row.theirs << ": " << notes;
    EXPECT_THAT(notes, HasSubstr(std::string(row.why))) << row.theirs;
    for (const dsl::Diagnostic& diag : checked.sink->all())
      EXPECT_FALSE(diag.suggestion.has_value()) << row.theirs;
  }
}

TEST(ForeignWords, WhatToWriteIsAccepted) {
  std::set<std::pair<ForeignPlace, std::string_view>> words;
  for (const ForeignWord& row : dsl::foreign_words()) {
    EXPECT_TRUE(words.emplace(row.place, row.word).second) << row.word << " has two rows";
    EXPECT_FALSE(row.ours.empty() && row.why.empty()) << row.word;
    if (row.ours.empty()) continue;
    EXPECT_EQ(check_text(row.ours).all_lines(), "") << row.word;
  }
}

// A name of the program comes before the table, and so does a name that is only misspelt.
TEST(ForeignWords, OtherNamesAreNotExplained) {
  EXPECT_EQ(check("fn clip(x: f32) -> f32 { x }\n" + in_encode("let y = clip(1.0)")).all_lines(),
            "");
  const Checked misspelt = check(in_encode("let y = maxx(g)"));
  EXPECT_EQ(all_notes(misspelt), "");
  EXPECT_EQ(misspelt.sink->all().at(0).suggestion.value().replacement, "max");
}

// Of these the words of the program itself are in the note.
TEST(ForeignWords, NotesShowWhatTheProgramSays) {
  const std::pair<const char*, const char*> cases[] = {
      {"let y = top_k(g, g.size())", "write `len(x)`"},
      {"let y = (abs(g)).sum()", "write `sum((abs(g)))`; operators are no methods"},
      {"let y = np.abs(g)", "write `abs(g)`; operators and constants have no module"},
      {"let y = torch.where(g > 0.0, g, 0.0)", "write `select(mask, x, 0.0)`"},
      {"let y = g[-2]", "write `g[n - 2]`; indices count from 0"},
      {"let y = g[-5..]", "write `g[n - 5..]`; indices count from 0"},
      {"let mut h = g\nh[-1] = 0.0", "write `h[n - 1]`; indices count from 0"},
      {"let y = sort(g, descending=true)", "write `descending: true`"},
      {"let y = sum(reshape(g, 1, n), dim=0)", "write `sum(m, axis: 0)`"},
      {"let y = (g // 2)", "this is a comment; write `floor_div(k, 2)`"},
  };
  for (const auto& [statement, note] : cases)
    EXPECT_THAT(all_notes(check(in_encode(statement))), HasSubstr(note)) << statement;
}

}  // namespace
}  // namespace cinch::sema
