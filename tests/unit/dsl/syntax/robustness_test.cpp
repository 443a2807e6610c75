// Hostile text: whatever the bytes, parse() returns, in time that grows with the text, with bounded
// diagnostics.
#include <chrono>
#include <random>

#include "parse_fixture.h"
#include "tests/environment.h"

namespace cinch::dsl {
namespace {

// Parses, renders and, where the text is right, formats: none of it may crash.
void exercise(const std::string& text) {
  const Parsed parsed(text);
  EXPECT_LE(parsed.sink.all().size(), kMaxSyntaxErrors + 1);
  for (const Diagnostic& diag : parsed.sink.all()) {
    EXPECT_LE(diag.span.begin, diag.span.end);
    EXPECT_LE(diag.span.end, text.size());
    // A message that names a C++ type comes from a rule without a name.
    EXPECT_EQ(message(diag).find("boost"), std::string::npos) << message(diag) << "\n" << text;
  }
  EXPECT_FALSE(parsed.sink.has_errors() && parsed.errors().empty());
  dump(parsed.module);
  if (parsed.sink.has_errors()) return;
  const Parsed again(format(*parsed.source, parsed.module));
  EXPECT_EQ(dump(again.module), dump(parsed.module)) << text;
}

const std::size_t kStride = is_sample_run() ? 7 : 1;

TEST(RobustnessTest, EveryTruncation) {
  for (const CorpusFile& file : corpus()) {
    for (std::size_t size = 0; size < file.text.size(); ++size) exercise(file.text.substr(0, size));
  }
}

TEST(RobustnessTest, EveryDeletedByte) {
  for (const CorpusFile& file : corpus()) {
    for (std::size_t at = 0; at < file.text.size(); at += kStride) {
      std::string text = file.text;
      exercise(text.erase(at, 1));
    }
  }
}

TEST(RobustnessTest, EveryDoubledByte) {
  for (const CorpusFile& file : corpus()) {
    for (std::size_t at = 0; at < file.text.size(); at += kStride) {
      std::string text = file.text;
      exercise(text.insert(at, 1, text[at]));
    }
  }
}

TEST(RobustnessTest, RandomReplacementsAndSwappedPieces) {
  std::mt19937 random(20260101);
  const std::string alphabet = "(){}[]|<>=+-*/.,:;!&^%@\"\\ \n\t0a_\xc3\xff";
  for (const CorpusFile& file : corpus()) {
    for (int round = 0; round < 500; ++round) {
      std::string text = file.text;
      for (int change = 0; change < 4; ++change) {
        const std::size_t at = random() % text.size();
        const std::size_t size = random() % 20;
        if (random() % 2 == 0) {
          text[at] = alphabet[random() % alphabet.size()];
        } else {
          const std::string piece = text.substr(at, size);
          text.erase(at, size);
          text.insert(random() % (text.size() + 1), piece);
        }
      }
      exercise(text);
    }
  }
}

TEST(RobustnessTest, RandomTokens) {
  const std::vector<std::string> words{
      "compressor", "fn",    "const", "let",     "mut",    "if",    "else", "for", "while",
      "in",         "wire",  "size",  "state",   "encode", "(",     ")",    "{",   "}",
      "[",          "]",     "|",     "<",       ">",      "=",     "..",   "..=", "->",
      "+",          "-",     ",",     ":",       ";",      ".",     "\n",   "x",   "1",
      "0.5",        "\"s\"", "int",   "bitcast", "as",     "count", "by"};
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const std::size_t num_words = random() % 60;
    for (std::size_t i = 0; i < num_words; ++i) text += words[random() % words.size()] + " ";
    exercise(text);
  }
}

std::string repeated(const std::string& piece, std::size_t size_bytes) {
  std::string text;
  while (text.size() + piece.size() <= size_bytes) text += piece;
  return text;
}

TEST(RobustnessTest, DeepNestingOfEveryKindIsADiagnostic) {
  for (const std::string piece : {"(",
                                  "[",
                                  "{",
                                  "-",
                                  "!",
                                  "f(",
                                  "x[",
                                  "|a| ",
                                  "if a { ",
                                  "if a {} else ",
                                  "1 + ",
                                  "1 + (",
                                  "a.b(",
                                  "a as ",
                                  "bitcast<u8>(",
                                  "[[",
                                  "wire { a: ",
                                  "{ let x = ",
                                  "1 * 2 + 3 << (",
                                  "a."}) {
    const Parsed parsed("compressor c { encode(g) { let x = " + repeated(piece, 500000));
    EXPECT_TRUE(parsed.sink.has_errors()) << piece;
  }
  const Parsed types("fn f(x: " + repeated("[", 500000));
  EXPECT_TRUE(types.sink.has_errors());
}

TEST(RobustnessTest, NestingWithinTheLimitIsFine) {
  const std::size_t depth = 120;
  std::string text = "const A = ";
  for (std::size_t i = 0; i < depth; ++i) text += "(";
  text += "1";
  for (std::size_t i = 0; i < depth; ++i) text += ")";
  exercise(text + "\n");
  EXPECT_FALSE(Parsed(text + "\n").sink.has_errors());
}

TEST(RobustnessTest, MegabyteFilesTakeLinearTime) {
  for (const std::string piece : {"const A = f(g(x), h[3] + 2 * 7)\n",
                                  "x",
                                  "\n",
                                  ";",
                                  "(",
                                  ")",
                                  "}",
                                  "{",
                                  "{}",
                                  "()",
                                  "[)",
                                  "\"",
                                  "'",
                                  "/* ",
                                  "// \n",
                                  "/// \n",
                                  "int<4>> ",
                                  "bitcast<int<4>>",
                                  "in (",
                                  "1 ",
                                  "a b\n",
                                  "let x = \n",
                                  "compressor a {\n",
                                  "fn f(x: f32) -> f32 { x }\n",
                                  "\xff",
                                  "/",
                                  "..",
                                  "if x {\n}\n",
                                  " {\n }\n",
                                  "(\nlet ",
                                  "int<(",
                                  "=\n{"}) {
    const auto start = std::chrono::steady_clock::now();
    const Parsed parsed(repeated(piece, kMaxSourceBytes));
    if (!parsed.sink.has_errors()) format(*parsed.source, parsed.module);
    const auto taken = std::chrono::steady_clock::now() - start;
    // Quadratic work on a megabyte takes minutes; a loaded machine with sanitizers stays far below
    // this.
    EXPECT_LT(std::chrono::duration<double>(taken).count(), 20.0) << piece;
  }
}

}  // namespace
}  // namespace cinch::dsl
