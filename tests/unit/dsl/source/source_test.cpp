// Lines, columns and spans of SourceBuffer; numbering of SourceSet.
#include "dsl/source/source.h"

#include <gtest/gtest.h>

namespace cinch::dsl {
namespace {

TEST(SourceBufferTest, CountsLinesAndColumnsFromOne) {
  const SourceBuffer source(0, "a.cinch", "ab\ncd\n");
  EXPECT_EQ(source.num_lines(), 2u);
  EXPECT_EQ(source.position(0), (LineColumn{1, 1}));
  EXPECT_EQ(source.position(2), (LineColumn{1, 3}));
  EXPECT_EQ(source.position(3), (LineColumn{2, 1}));
  EXPECT_EQ(source.position(5), (LineColumn{2, 3}));
}

TEST(SourceBufferTest, PutsOffsetsBehindTheEndOnTheLastLine) {
  const SourceBuffer source(0, "a.cinch", "ab\ncd");
  EXPECT_EQ(source.position(5), (LineColumn{2, 3}));
  EXPECT_EQ(source.position(500), (LineColumn{2, 3}));
}

TEST(SourceBufferTest, EmptyTextHasOneLine) {
  const SourceBuffer source(0, "a.cinch", "");
  EXPECT_EQ(source.num_lines(), 1u);
  EXPECT_EQ(source.line_text(1), "");
  EXPECT_EQ(source.position(0), (LineColumn{1, 1}));
}

TEST(SourceBufferTest, ColumnsAreCodePoints) {
  const SourceBuffer source(0, "a.cinch", "// \xc3\xa9\xe2\x82\xac x");
  EXPECT_EQ(source.position(3), (LineColumn{1, 4}));
  EXPECT_EQ(source.position(5), (LineColumn{1, 5}));
  EXPECT_EQ(source.position(9), (LineColumn{1, 7}));
}

TEST(SourceBufferTest, LineTextLeavesOutTheLineEnd) {
  const SourceBuffer source(0, "a.cinch", "one\r\ntwo\n\nfour");
  EXPECT_EQ(source.line_text(1), "one");
  EXPECT_EQ(source.line_text(2), "two");
  EXPECT_EQ(source.line_text(3), "");
  EXPECT_EQ(source.line_text(4), "four");
}

TEST(SourceBufferTest, CutsSpansAtTheEndOfTheText) {
  const SourceBuffer source(0, "a.cinch", "hello");
  EXPECT_EQ(source.text(Span{0, 1, 3}), "el");
  EXPECT_EQ(source.text(Span{0, 3, 99}), "lo");
  EXPECT_EQ(source.text(Span{0, 99, 100}), "");
}

TEST(SpanTest, JoinCoversBothInAnyOrder) {
  EXPECT_EQ(join(Span{1, 4, 6}, Span{1, 8, 9}), (Span{1, 4, 9}));
  EXPECT_EQ(join(Span{1, 8, 9}, Span{1, 4, 6}), (Span{1, 4, 9}));
}

TEST(CountCodePointsTest, CountsStrayContinuationsAsOneEach) {
  EXPECT_EQ(count_code_points("abc"), 3u);
  EXPECT_EQ(count_code_points("\xc3\xa9"), 1u);
  EXPECT_EQ(count_code_points("\x80"), 1u);
}

TEST(SourceSetTest, KeepsBuffersInPlaceAndFindsThem) {
  SourceSet set;
  const SourceBuffer& first = set.add("first", "1");
  for (int i = 0; i < 100; ++i) set.add("more", "x");
  EXPECT_EQ(first.name(), "first");
  EXPECT_EQ(set.find(first.id()), &first);
  EXPECT_EQ(set.find_name("first"), &first);
  EXPECT_EQ(set.find_name("none"), nullptr);
  EXPECT_EQ(set.find(kNoFile), nullptr);
}

}  // namespace
}  // namespace cinch::dsl
