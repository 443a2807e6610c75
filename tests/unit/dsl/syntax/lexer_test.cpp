// Tokens, comments and invalid characters.
#include "dsl/syntax/token.h"
#include "parse_fixture.h"

namespace cinch::dsl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Texts of all tokens but the last.
std::vector<std::string> token_texts(const std::string& text) {
  SourceSet sources;
  DiagSink sink;
  const TokenStream stream = lex(sources.add("t", text), sink);
  std::vector<std::string> result;
  for (const Token& token : stream.tokens) result.emplace_back(token.text);
  EXPECT_EQ(stream.tokens.back().kind, TokenKind::EndOfFile);
  result.pop_back();
  return result;
}

TEST(LexerTest, TakesTheLongestPunctuation) {
  EXPECT_THAT(token_texts("a<=b>>c..=d..e->f!=g&&h&i"),
              ElementsAre("a", "<=", "b", ">>", "c", "..=", "d", "..", "e", "->", "f", "!=", "g",
                          "&&", "h", "&", "i"));
}

TEST(LexerTest, NumbersNeedADigitBehindThePoint) {
  EXPECT_THAT(
      token_texts("0..n 1.5..2.5 2.e 1e-8 1.25E+3 0xfF"),
      ElementsAre("0", "..", "n", "1.5", "..", "2.5", "2", ".", "e", "1e-8", "1.25E+3", "0xfF"));
}

TEST(LexerTest, CommentsAreKeptBesideTheTokens) {
  SourceSet sources;
  DiagSink sink;
  const SourceBuffer& source =
      sources.add("t", "a // line\n/* block\n */ b /// doc\nc //// four\n");
  const TokenStream stream = lex(source, sink);
  ASSERT_EQ(stream.comments.size(), 4u);
  EXPECT_EQ(source.text(stream.comments[0].span), "// line");
  EXPECT_EQ(stream.comments[1].kind, ast::CommentKind::Block);
  EXPECT_EQ(stream.comments[2].kind, ast::CommentKind::Doc);
  EXPECT_EQ(stream.comments[3].kind, ast::CommentKind::Line);
  EXPECT_EQ(stream.tokens.size(), 4u);
}

TEST(LexerTest, DocCommentsBelongToTheNextToken) {
  SourceSet sources;
  DiagSink sink;
  const TokenStream stream = lex(sources.add("t", "/// one\n///two\nx y"), sink);
  ASSERT_NE(stream.tokens[0].doc, Token::kNone);
  EXPECT_EQ(stream.docs[stream.tokens[0].doc], "one\ntwo");
  EXPECT_EQ(stream.tokens[1].doc, Token::kNone);
}

// The formatter adds and drops separators.
TEST(LexerTest, DocCommentsPassSeparators) {
  SourceSet sources;
  DiagSink sink;
  const TokenStream stream = lex(sources.add("t", "/// one\n; /// two\n, x"), sink);
  EXPECT_EQ(stream.tokens[0].doc, Token::kNone);
  EXPECT_EQ(stream.tokens[1].doc, Token::kNone);
  ASSERT_NE(stream.tokens[2].doc, Token::kNone);
  EXPECT_EQ(stream.docs[stream.tokens[2].doc], "one\ntwo");
}

TEST(LexerTest, CarriageReturnsAndByteOrderMarksAreBlanks) {
  EXPECT_THAT(token_texts("\xef\xbb\xbf"
                          "a\r\nb // c\r\n"),
              ElementsAre("a", "b"));
}

TEST(LexerTest, ReportsEachKindOfBrokenText) {
  EXPECT_THAT(Parsed("const A = $").places(), ElementsAre("1:11 UnexpectedCharacter"));
  EXPECT_THAT(Parsed("const A = 1 /* x").places(), ElementsAre("1:13 UnterminatedComment"));
  EXPECT_THAT(Parsed("import \"abc\n").places(), ElementsAre("1:8 UnterminatedString"));
  EXPECT_THAT(Parsed("import \"a\\qc\"\n").places(), ElementsAre("1:10 UnknownEscape"));
  EXPECT_THAT(Parsed("const A = 1x\n").places(), ElementsAre("1:11 MalformedNumber"));
  EXPECT_THAT(Parsed("const A = 1e\n").places(), ElementsAre("1:11 MalformedNumber"));
  EXPECT_THAT(Parsed("const A = 0xg\n").places(), ElementsAre("1:11 MalformedNumber"));
  EXPECT_THAT(Parsed("const A = 18446744073709551616\n").places(),
              ElementsAre("1:11 NumberTooLarge"));
  EXPECT_THAT(Parsed("const A = 1e999\n").places(), ElementsAre("1:11 NumberTooLarge"));
}

TEST(LexerTest, TakesTheLargestAndSmallestNumbers) {
  EXPECT_THAT(Parsed("const A = 18446744073709551615\nconst B = 1e-999\n").places(), IsEmpty());
}

TEST(LexerTest, UnexpectedBytesAreOneMistakePerRun) {
  EXPECT_THAT(Parsed("const A = \xff\xfe\xc3\xa9\n").places(),
              ElementsAre("1:11 UnexpectedCharacter"));
}

TEST(TokenTest, EveryKeywordAndPunctuationHasItsSpelling) {
  EXPECT_EQ(spelling(TokenKind::KwCompressor), "compressor");
  EXPECT_EQ(spelling(TokenKind::Bang), "!");
  EXPECT_EQ(spelling(TokenKind::Name), "");
  EXPECT_EQ(word_kind("wire"), TokenKind::KwWire);
  EXPECT_EQ(word_kind("wired"), TokenKind::Name);
}

}  // namespace
}  // namespace cinch::dsl
