// The table of diagnostics, the sink and messages.
#include "dsl/diag/diag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace cinch::dsl {
namespace {

TEST(DiagTableTest, CodesAreUniqueAndWellFormed) {
  std::set<std::string_view> codes;
  for (const DiagInfo& info : kDiagTable) {
    EXPECT_TRUE(codes.insert(info.code).second) << info.code << " is used twice";
    EXPECT_THAT(std::string(info.code), testing::MatchesRegex("[A-Z][0-9][0-9][0-9]"));
    EXPECT_FALSE(info.text.empty()) << info.name;
  }
}

TEST(DiagTableTest, MessagesFollowTheStyle) {
  for (const DiagInfo& info : kDiagTable) {
    EXPECT_EQ(info.help.empty(), info.name == "ExternNotCompiled") << info.name;
    EXPECT_THAT(std::string(info.text), testing::MatchesRegex("[^A-Z].*[^.]")) << info.name;
  }
}

TEST(DiagTableTest, EveryTemplateFormatsWithItsArity) {
  for (std::size_t i = 0; i < kNumDiagKinds; ++i) {
    const auto kind = static_cast<DiagKind>(i);
    Diagnostic diag{kind, {}, std::vector<DiagArg>(diag_arity(kind), std::string("x")), {}, {}, {}};
    EXPECT_NO_THROW(message(diag)) << diag_info(kind).name;
  }
}

TEST(DiagArityTest, IsOneMoreThanTheLargestSlot) {
  static_assert(diag_arity(DiagKind::UnterminatedComment) == 0);
  static_assert(diag_arity(DiagKind::UnclosedBracket) == 1);
  static_assert(diag_arity(DiagKind::Expected) == 2);
}

TEST(DiagSinkTest, CollectsInOrderAndCountsErrors) {
  DiagSink sink;
  EXPECT_FALSE(sink.has_errors());
  sink.report<DiagKind::Expected>(Span{0, 1, 2}, "`=`", std::string("`x`"));
  sink.report<DiagKind::TooDeep>(Span{0, 3, 4}, 256);
  ASSERT_EQ(sink.all().size(), 2u);
  EXPECT_EQ(sink.num_errors(), 2u);
  EXPECT_EQ(message(sink.all()[0]), "expected `=`, found `x`");
  EXPECT_EQ(message(sink.all()[1]), "more than 256 levels of nesting");
}

TEST(DiagnosticTest, KeepsLabelsNotesAndSuggestion) {
  DiagSink sink;
  sink.report<DiagKind::CannotAssign>(Span{0, 1, 2})
      .label(Span{0, 5, 6}, "declared here")
      .note("a note")
      .note(Span{0, 7, 8}, "another")
      .suggest(Span{0, 1, 2}, "size");
  const Diagnostic& diag = sink.all().front();
  EXPECT_EQ(diag.labels.size(), 1u);
  EXPECT_EQ(diag.notes.size(), 2u);
  EXPECT_FALSE(diag.notes[0].span.has_value());
  ASSERT_TRUE(diag.suggestion.has_value());
  EXPECT_EQ(diag.suggestion->replacement, "size");
}

TEST(DiagnosticTest, AnEmptySuggestionIsNone) {
  Diagnostic diag{DiagKind::CannotAssign, {}, {}, {}, {}, {}};
  diag.suggest({}, "");
  EXPECT_FALSE(diag.suggestion.has_value());
}

}  // namespace
}  // namespace cinch::dsl
