// Positions of editors, and their names of files.
#include "compiler/lsp/protocol/json.h"

#include <gtest/gtest.h>

#include <string>

namespace cinch::lsp {
namespace {

TEST(TextPositionsTest, CountsUtf16UnitsOfALine) {
  const std::string text = "a\n\xc3\xa9\xf0\x9f\x98\x80z\n";  // é and an emoji of two units
  const TextPositions positions(text);
  EXPECT_EQ(positions.position(2), (Position{1, 0}));
  EXPECT_EQ(positions.position(4), (Position{1, 1}));
  EXPECT_EQ(positions.position(8), (Position{1, 3}));
  EXPECT_EQ(positions.offset({1, 3}), 8u);
  EXPECT_EQ(positions.offset({1, 1}), 4u);
}

TEST(TextPositionsTest, TakesThePlaceBeforeAPairThatAPositionCuts) {
  const std::string text = "\xf0\x9f\x98\x80z";
  EXPECT_EQ(TextPositions(text).offset({0, 1}), 0u);
  EXPECT_EQ(TextPositions(text).offset({0, 2}), 4u);
}

TEST(TextPositionsTest, EndsLinesAtEveryLineEnd) {
  const std::string text = "a\r\nb\rc\nd";
  const TextPositions positions(text);
  EXPECT_EQ(positions.offset({1, 0}), 3u);
  EXPECT_EQ(positions.offset({2, 0}), 5u);
  EXPECT_EQ(positions.offset({3, 0}), 7u);
  EXPECT_EQ(positions.position(5), (Position{2, 0}));
  // Behind the last character of a line, before its end.
  EXPECT_EQ(positions.offset({0, 99}), 1u);
  EXPECT_EQ(positions.offset({1, 99}), 4u);
}

TEST(TextPositionsTest, CutsWhatLiesBehindTheText) {
  const std::string text = "ab";
  const TextPositions positions(text);
  EXPECT_EQ(positions.offset({7, 0}), 2u);
  EXPECT_EQ(positions.position(99), (Position{0, 2}));
  EXPECT_EQ(TextPositions("").offset({0, 0}), 0u);
}

TEST(TextPositionsTest, AgreesWithItselfAtEveryCodePoint) {
  const std::string text = "x\xc3\xa9\n\n\r\n\xe2\x82\xac\xf0\x9f\x98\x80\ty";
  const TextPositions positions(text);
  for (std::uint32_t offset = 0; offset <= text.size(); ++offset) {
    const bool begins = offset == text.size() || (text[offset] & 0xc0) != 0x80;
    const bool is_in_line_end = offset > 0 && text[offset - 1] == '\r';
    if (begins && !is_in_line_end) EXPECT_EQ(positions.offset(positions.position(offset)), offset);
  }
}

TEST(UriTest, LeadsToTheFileAndBack) {
  EXPECT_EQ(path_of_uri("file:///a/b%20c/%C3%A9.cinch"), "/a/b c/\xc3\xa9.cinch");
  EXPECT_EQ(uri_of_path("/a/b c/\xc3\xa9.cinch"), "file:///a/b%20c/%C3%A9.cinch");
  EXPECT_EQ(path_of_uri("file://localhost/a/../b.cinch"), "/b.cinch");
  EXPECT_EQ(path_of_uri("file:///a%2"), "/a%2");
}

TEST(UriTest, KeepsTheNameOfATextThatIsNoFile) {
  EXPECT_EQ(path_of_uri("untitled:Untitled-1"), "untitled:Untitled-1");
  EXPECT_EQ(uri_of_path("untitled:Untitled-1"), "untitled:Untitled-1");
  EXPECT_EQ(uri_of_path("/with:colon"), "file:///with%3Acolon");
}

}  // namespace
}  // namespace cinch::lsp
