// The forms of a diagnostic for people and machines.
#include "dsl/diag/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cinch::dsl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class RenderTest : public testing::Test {
 protected:
  // The first occurrence of `piece` in the file.
  Span at(const SourceBuffer& source, std::string_view piece) const {
    const auto begin = static_cast<std::uint32_t>(source.text().find(piece));
    return {source.id(), begin, begin + static_cast<std::uint32_t>(piece.size())};
  }

  SourceSet sources;
  DiagSink sink;
};

TEST_F(RenderTest, TextShowsPositionLineAndCaret) {
  const SourceBuffer& source = sources.add("a.cinch", "one\nlet x == 3\n");
  sink.report<DiagKind::Expected>(at(source, "=="), "`=`", "`==`");
  EXPECT_EQ(render_text(sink.all(), sources),
            "a.cinch:2:7: error[P003]: expected `=`, found `==`\n"
            "    2 | let x == 3\n"
            "      |       ^^\n");
}

TEST_F(RenderTest, TextShowsNotesLabelsAndSuggestion) {
  const SourceBuffer& source = sources.add("a.cinch", "siz k = 3\nstate s\n");
  sink.report<DiagKind::UnknownItem>(at(source, "siz"), "`siz`")
      .label(at(source, "state"), "another item")
      .note("no place")
      .suggest(at(source, "siz"), "size");
  EXPECT_EQ(render_text(sink.all(), sources),
            "a.cinch:1:1: error[P005]: expected an item of a compressor, found `siz`\n"
            "    1 | siz k = 3\n"
            "      | ^^^\n"
            "a.cinch:2:1: note: another item\n"
            "    2 | state s\n"
            "      | ^^^^^\n"
            "note: no place\n"
            "note: did you mean `size`?\n");
}

TEST_F(RenderTest, EmptySpanGetsOneCaret) {
  const SourceBuffer& source = sources.add("a.cinch", "let x");
  sink.report<DiagKind::Expected>(Span{source.id(), 5, 5}, "`=`", "the end of the line");
  EXPECT_THAT(render_text(sink.all(), sources), HasSubstr("      |      ^\n"));
}

TEST_F(RenderTest, SpanOverLinesIsMarkedToTheEndOfItsFirst) {
  const SourceBuffer& source = sources.add("a.cinch", "f(a,\n  b)\n");
  sink.report<DiagKind::CannotAssign>(at(source, "f(a,\n  b)"));
  EXPECT_THAT(render_text(sink.all(), sources), HasSubstr("    1 | f(a,\n      | ^^^^\n"));
}

TEST_F(RenderTest, CaretStandsRightBehindTabsAndWideBytes) {
  const SourceBuffer& source = sources.add("a.cinch", "\t\xc3\xa9 $");
  sink.report<DiagKind::UnexpectedCharacter>(at(source, "$"), "`$`");
  EXPECT_THAT(render_text(sink.all(), sources), HasSubstr("      | \t  ^\n"));
}

TEST_F(RenderTest, LongLinesAreCutAroundTheSpan) {
  const std::string text = std::string(5000, 'a') + "$" + std::string(5000, 'b');
  const SourceBuffer& source = sources.add("a.cinch", text);
  sink.report<DiagKind::UnexpectedCharacter>(at(source, "$"), "`$`");
  const std::string shown = render_text(sink.all(), sources);
  EXPECT_LT(shown.size(), 500u);
  EXPECT_THAT(shown, HasSubstr("a.cinch:1:5001: error"));
  EXPECT_THAT(shown, HasSubstr("…" + std::string(60, 'a') + "$b"));
  EXPECT_THAT(shown, HasSubstr("| " + std::string(61, ' ') + "^\n"));
}

TEST_F(RenderTest, LongLinesOfStrayBytesAreCutToo) {
  const SourceBuffer& source = sources.add("a.cinch", std::string(1000, '\x88') + "$");
  sink.report<DiagKind::UnexpectedCharacter>(at(source, "$"), "`$`");
  EXPECT_LT(render_text(sink.all(), sources).size(), 1000u);
}

TEST_F(RenderTest, ControlCharactersDoNotReachTheTerminal) {
  const SourceBuffer& source = sources.add("a.cinch", "\x1b[2J $");
  sink.report<DiagKind::UnexpectedCharacter>(at(source, "$"), "`$`");
  EXPECT_THAT(render_text(sink.all(), sources), Not(HasSubstr("\x1b")));
}

TEST_F(RenderTest, ControlsOfC1AndMarksOfDirectionAreEscapedInTheExcerpt) {
  const SourceBuffer& source = sources.add("a.cinch", "// \u009b31m \u202eevil\u2066 $");
  sink.report<DiagKind::UnexpectedCharacter>(at(source, "$"), "`\u200f$`");
  EXPECT_EQ(render_text(sink.all(), sources),
            "a.cinch:1:16: error[L002]: unexpected character `\\u200f$`\n"
            "    1 | // \\u009b31m \\u202eevil\\u2066 $\n"
            "      |                               ^\n");
}

TEST_F(RenderTest, TextsThatNobodyWouldReadLoseTheirMiddle) {
  sink.report<DiagKind::NumberTooLarge>(Span{}, std::string(300000, '1'))
      .note(std::string(300000, 'n'));
  const std::string shown = render_text(sink.all(), sources);
  EXPECT_LT(shown.size(), 1000u);
  EXPECT_THAT(shown, HasSubstr("11…11"));
  EXPECT_THAT(shown, HasSubstr("1` does not fit in 64 bits"));
}

TEST_F(RenderTest, ColourOnlyOnRequest) {
  const SourceBuffer& source = sources.add("a.cinch", "x");
  sink.report<DiagKind::CannotAssign>(source.whole());
  EXPECT_THAT(render_text(sink.all(), sources), Not(HasSubstr("\x1b[")));
  EXPECT_THAT(render_text(sink.all(), sources, {.has_color = true}), HasSubstr("\x1b[1;31merror["));
}

TEST_F(RenderTest, DiagnosticWithoutFileHasNoPosition) {
  sink.report<DiagKind::CannotAssign>(Span{});
  EXPECT_EQ(render_text(sink.all(), sources), "error[P007]: cannot assign to this expression\n");
}

TEST_F(RenderTest, JsonHasEveryFact) {
  const SourceBuffer& source = sources.add("a.cinch", "one\nlet x == 3\n");
  sink.report<DiagKind::Expected>(at(source, "=="), "`=`", "`==`")
      .note(at(source, "one"), "here")
      .suggest(at(source, "=="), "=");
  const json log = json::parse(render_json(sink.all(), sources));
  EXPECT_EQ(log["errors"], 1);
  const json& diag = log["diagnostics"][0];
  EXPECT_EQ(diag["severity"], "error");
  EXPECT_EQ(diag["code"], "P003");
  EXPECT_EQ(diag["kind"], "Expected");
  EXPECT_EQ(diag["message"], "expected `=`, found `==`");
  EXPECT_EQ(diag["args"], json::array({"`=`", "`==`"}));
  EXPECT_EQ(diag["file"], "a.cinch");
  EXPECT_EQ(diag["line"], 2);
  EXPECT_EQ(diag["column"], 7);
  EXPECT_EQ(diag["end_line"], 2);
  EXPECT_EQ(diag["end_column"], 9);
  EXPECT_EQ(diag["begin_byte"], 10);
  EXPECT_EQ(diag["notes"][0]["line"], 1);
  EXPECT_EQ(diag["suggestion"]["replacement"], "=");
}

TEST_F(RenderTest, JsonReplacesBytesThatAreNoText) {
  const SourceBuffer& source = sources.add("a.cinch", "\xff\xfe");
  sink.report<DiagKind::UnexpectedCharacter>(source.whole(), std::string(source.text()));
  EXPECT_TRUE(json::accept(render_json(sink.all(), sources)));
  EXPECT_TRUE(json::accept(render_sarif(sink.all(), sources, "1.0")));
}

TEST_F(RenderTest, JsonOfNothingIsAnEmptyList) {
  const json log = json::parse(render_json({}, sources));
  EXPECT_EQ(log["errors"], 0);
  EXPECT_TRUE(log["diagnostics"].empty());
}

TEST_F(RenderTest, SarifNamesToolRulesAndPlaces) {
  const SourceBuffer& source = sources.add("my dir/a.cinch", "siz k = 3\nlet\n");
  sink.report<DiagKind::UnknownItem>(at(source, "siz"), "`siz`").suggest(at(source, "siz"), "size");
  sink.report<DiagKind::UnknownItem>(at(source, "let"), "`let`").note(at(source, "k"), "here");
  const json log = json::parse(render_sarif(sink.all(), sources, "0.1.0"));
  EXPECT_EQ(log["version"], "2.1.0");
  const json& run = log["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["name"], "cinch");
  EXPECT_EQ(run["tool"]["driver"]["version"], "0.1.0");
  ASSERT_EQ(run["tool"]["driver"]["rules"].size(), 1u);
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "P005");
  ASSERT_EQ(run["results"].size(), 2u);
  const json& first = run["results"][0];
  EXPECT_EQ(first["ruleId"], "P005");
  EXPECT_EQ(first["ruleIndex"], 0);
  EXPECT_EQ(first["level"], "error");
  const json& place = first["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "my%20dir/a.cinch");
  EXPECT_EQ(place["region"]["startLine"], 1);
  EXPECT_EQ(place["region"]["endColumn"], 4);
  const json& change = first["fixes"][0]["artifactChanges"][0]["replacements"][0];
  EXPECT_EQ(change["insertedContent"]["text"], "size");
  EXPECT_EQ(run["results"][1]["relatedLocations"][0]["message"]["text"], "here");
}

class ManyTest : public RenderTest {
 protected:
  ManyTest() {
    const SourceBuffer& source = sources.add("a.cinch", "x\n");
    const Span span = source.whole();
    for (int i = 0; i < 60; ++i) sink.report<DiagKind::ChainedComparison>(span);
    for (int i = 0; i < 30; ++i) sink.report<DiagKind::UnclosedBracket>(span, std::to_string(i));
  }

  std::size_t num_shown(const std::string& word) const {
    const std::string text = render_text(sink.all(), sources);
    std::size_t count = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      ++count;
    }
    return count;
  }
};

TEST_F(ManyTest, ErrorsAreShownBeforeOthersAndTheRestIsCounted) {
  EXPECT_EQ(num_shown("a.cinch:1:1: error["), 30U);
  EXPECT_EQ(num_shown("a.cinch:1:1: warning["), kMostShown - 30);
  EXPECT_THAT(render_text(sink.all(), sources),
              HasSubstr("\nwarning: 40 more warnings are not shown\n"));
  const json log = json::parse(render_json(sink.all(), sources));
  EXPECT_EQ(log["errors"], 30);
  EXPECT_EQ(log["left_out"], 40);
  EXPECT_EQ(log["diagnostics"].size(), kMostShown);
}

TEST_F(ManyTest, AsManyErrorsAsThereAreAreCounted) {
  const Span span = sources.find(0)->whole();
  for (int i = 0; i < 21; ++i) sink.report<DiagKind::UnclosedBracket>(span, "[");
  EXPECT_EQ(num_shown("a.cinch:1:1: error["), kMostShown);
  EXPECT_THAT(render_text(sink.all(), sources),
              HasSubstr("\nerror: 1 more error and 60 more warnings are not shown\n"));
  const json log = json::parse(render_sarif(sink.all(), sources, "1.0"));
  const json& run = log["runs"][0];
  EXPECT_EQ(run["results"].size(), kMostShown);
  EXPECT_EQ(run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"],
            "1 more error and 60 more warnings are not shown");
}

}  // namespace
}  // namespace cinch::dsl
