// Programs that are changed at random, token by token: the checker ends, reports, and never throws.
// Changes are drawn from a fixed generator, so a failure can be repeated.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/environment.h"
#include "tests/unit/dsl/sema/check_fixture.h"

namespace cinch::sema {
namespace {

// Words, numbers and single characters; blanks stay with what is before them.
std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (is_word(text[i]) && end < text.size() && is_word(text[end])) ++end;
    while (end < text.size() && (text[end] == ' ' || text[end] == '\n')) ++end;
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

std::string mutated(std::vector<std::string> tokens, std::mt19937& random) {
  const int changes = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < changes; ++i) {
    const std::size_t at = random() % tokens.size(), from = random() % tokens.size();
    switch (random() % 4) {
      case 0:
        tokens[at] = "";
        break;
      case 1:
        tokens[at] = tokens[from];
        break;
      case 2:
        std::swap(tokens[at], tokens[from]);
        break;
      default:
        tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens[from]);
    }
  }
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

void check_all(const std::string& text) {
  Checked checked = check(text);
  if (checked.sink->has_errors()) return;
  for (const CompressorEntry& entry : checked.module->compressors()) {
    const auto program = elaborate(*checked.module, entry.name, {}, *checked.sink);
    if (program) dump(*program);
  }
}

TEST(SemaMutations, NeverThrow) {
  std::vector<std::string> programs = {read_file(std::string(CINCH_PROGRAMS) + "/language.cinch"),
                                       read_file(std::string(CINCH_PROGRAMS) + "/operators.cinch")};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(CINCH_STDLIB)) {
    if (entry.path().extension() == ".cinch") programs.push_back(read_file(entry.path()));
  }
  std::mt19937 random(20260101);
  const auto count = number_from("CINCH_MUTATIONS", 400);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string text = mutated(tokens_of(programs[random() % programs.size()]), random);
    EXPECT_NO_THROW(check_all(text)) << text;
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace cinch::sema
