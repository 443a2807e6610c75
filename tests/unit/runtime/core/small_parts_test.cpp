// Typed ids, hashes, internal errors, similar names, text for terminals, JSON that people write,
// and the text of the language's functions.
#include <gtest/gtest.h>

#include "runtime/core/check.h"
#include "runtime/core/error.h"
#include "runtime/core/hash.h"
#include "runtime/core/ids.h"
#include "runtime/core/json.h"
#include "runtime/core/lang/embed.h"
#include "runtime/core/log.h"

namespace cinch {
namespace {

TEST(IdTest, DefaultRefersToNothing) {
  using OpId = Id<struct OpTag>;
  EXPECT_FALSE(OpId());
  EXPECT_TRUE(OpId(0));
  EXPECT_EQ(OpId(7).index(), 7u);
  EXPECT_LT(OpId(3), OpId(4));
  static_assert(!std::is_convertible_v<Id<struct OtherTag>, OpId>);
}

TEST(HashTest, KnownValues) {
  // XXH3 of nothing, from its specification.
  EXPECT_EQ(to_hex(hash64("")), "2d06800538d394c2");
  EXPECT_EQ(to_hex(hash128("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
}

TEST(HashTest, PartsDoNotRunTogether) {
  EXPECT_NE(Hasher().add("ab").add("c").finish128(), Hasher().add("a").add("bc").finish128());
  EXPECT_EQ(Hasher().add_bytes("abc", 3).finish128(), hash128("abc"));
  Hasher twice;
  twice.add(std::uint64_t{5});
  const Hash128 once = twice.finish128();
  EXPECT_EQ(twice.finish128(), once);
}

TEST(VisibleTextTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(rt::visible_text("a\tb\n"), "a\tb\n");
  EXPECT_EQ(rt::visible_text("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
  EXPECT_EQ(rt::visible_text("\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80"),
            "\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80");
  EXPECT_EQ(rt::visible_text("g\u202eypn.\u2066\u200f\u061c\u2029"),
            "g\\u202eypn.\\u2066\\u200f\\u061c\u2029");
  EXPECT_EQ(rt::visible_text("\xc2\x9b\xc2\xa0"), "\\u009b\xc2\xa0");  // C1, which begins CSI
  // No character of UTF-8: alone, or cut.
  EXPECT_EQ(rt::visible_text("\x9b|\xff|\xe2\x80"), "\\x9b|\\xff|\\xe2\\x80");
}

TEST(UserJsonTest, ErrorsSayWhereAndWhatIsExpected) {
  const auto error_of = [](const std::string& text) {
    rt::JsonTree tree;
    return tree.parse_user(text);
  };
  EXPECT_EQ(error_of(R"({"a": [1, 2.5, "x", null]})"), "");
  EXPECT_EQ(error_of("{\"a\": 1,\n}"),
            "line 2, column 1: a key in double quotes is expected, not }");
  EXPECT_EQ(error_of("{\"a\" 12}"), "line 1, column 6: ':' is expected, not 12");
  EXPECT_EQ(error_of("{\"a\": 1]"), "line 1, column 8: ',' or '}' is expected, not ]");
  EXPECT_EQ(error_of("[1 \"two\"]"), "line 1, column 4: ',' or ']' is expected, not \"two\"");
  EXPECT_EQ(error_of("[1]\n\n 2"), "line 3, column 2: the end of the text is expected, not 2");
  EXPECT_EQ(error_of("[x]"), "line 1, column 2: a value is expected, not x");
  EXPECT_EQ(error_of("{a: 1}"), "line 1, column 2: a key in double quotes is expected, not a");
  EXPECT_EQ(error_of("[1,"), "line 1, column 4: the text ends where a value is expected");
  EXPECT_EQ(error_of("[\"\xc3\xa9\", 1e999]"), "line 1, column 7: the number 1e999 is too large");
  EXPECT_EQ(error_of("[\"a"), "line 1, column 4: invalid string: missing closing quote");
  EXPECT_EQ(error_of("{\"a\": 1,\n  \"a\": 2}"),
            "line 2, column 3: \"a\" is there twice in one object");
  EXPECT_THROW(rt::parse_user_json("{"), std::invalid_argument);
}

TEST(CheckTest, ErrorsSayWhereAndWhat) {
  try {
    CINCH_CHECK(1 + 1 == 3, "sums are off");
    FAIL();
  } catch (InternalError& error) {
    EXPECT_EQ(error.kind(), InternalErrorKind::Bug);
    EXPECT_EQ(error.message(), "check `1 + 1 == 3` failed: sums are off");
    EXPECT_EQ(error.location().rfind("runtime/core/small_parts_test.cpp:", 0), 0u)
        << error.location();
    error.attach("lower", "program");
    EXPECT_NE(std::string(error.what()).find("internal error (bug) in lower at"),
              std::string::npos);
  }
  try {
    CINCH_LIMITATION("matrices of three dimensions");
  } catch (const InternalError& error) {
    EXPECT_EQ(error.kind(), InternalErrorKind::Limitation);
  }
}

TEST(ErrorTest, ResultsCarryKindAndMessage) {
  const rt::Result<int> result = rt::fail(rt::ErrorKind::CorruptPayload, "field `x`", 7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().native_code, 7);
  EXPECT_STREQ(rt::error_kind_name(result.error().kind), "corrupt payload");
}

TEST(LangTextTest, IsWholeAndIncludesNothing) {
  const std::string& text = lang::source_text();
  for (const char* part : {"base.h", "rounding.h", "convert.h", "random_runs.h"}) {
    EXPECT_NE(text.find(std::string("// ") + part + ": "), std::string::npos) << part;
  }
  EXPECT_EQ(text.find("#include"), std::string::npos);
  EXPECT_EQ(text.find("std::"), std::string::npos);
  std::size_t total = 0;
  for (const lang::SourcePart& part : lang::source_parts()) total += part.text.size();
  EXPECT_EQ(total, text.size());
}

}  // namespace

// The search for similar names.

namespace {

TEST(NearestNameTest, FindsSlipsOfTheFinger) {
  EXPECT_EQ(nearest_name("siz", {"state", "size"}), "size");
  EXPECT_EQ(nearest_name("sacn", {"scan", "sum"}), "scan");
  EXPECT_EQ(nearest_name("histgoram", {"histogram", "hadamard"}), "histogram");
}

TEST(NearestNameTest, FindsNothingWhenAllAreFar) {
  EXPECT_EQ(nearest_name("banana", {"state", "size"}), "");
  EXPECT_EQ(nearest_name("x", {"y"}), "");
  EXPECT_EQ(nearest_name("", {"a"}), "");
  EXPECT_EQ(nearest_name("same", {"same"}), "");
}

TEST(NearestNameTest, TiesGoToTheEarlier) {
  EXPECT_EQ(nearest_name("bat", {"cat", "hat"}), "cat");
}

}  // namespace
}  // namespace cinch
