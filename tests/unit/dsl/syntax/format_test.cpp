// The formatter: canonical, idempotent, keeps every comment and the tree.
#include "parse_fixture.h"
#include "tests/environment.h"

namespace cinch::dsl {
namespace {

std::string formatted(const std::string& text) {
  const Parsed parsed(text);
  EXPECT_FALSE(parsed.sink.has_errors()) << text << "\n" << parsed.errors();
  return format(*parsed.source, parsed.module);
}

std::vector<std::string> comment_texts(const Parsed& parsed) {
  std::vector<std::string> result;
  for (const ast::Comment& comment : parsed.module.comments) {
    result.emplace_back(parsed.source->text(comment.span));
  }
  return result;
}

// All laws of the formatter for a text that parses; returns the formatted text.
std::string check_laws(const std::string& text) {
  const Parsed before(text);
  const std::string once = format(*before.source, before.module);
  const Parsed after(once);
  EXPECT_FALSE(after.sink.has_errors()) << "from\n" << text << "\nto\n" << once << after.errors();
  EXPECT_EQ(dump(before.module), dump(after.module)) << "from\n" << text << "\nto\n" << once;
  EXPECT_EQ(comment_texts(before), comment_texts(after)) << "from\n" << text << "\nto\n" << once;
  EXPECT_EQ(format(*after.source, after.module), once) << "not idempotent, from\n" << text;
  return once;
}

TEST(FormatTest, TablesOfNumbersFillTheirLines) {
  std::string numbers, names;
  for (int i = 0; i < 40; ++i) {
    numbers += (i > 0 ? "," : "") + std::string(i % 3 == 0 ? "-" : "") + std::to_string(i) + ".25";
    names += (i > 0 ? "," : "") + std::string("k + 1") + std::to_string(i);
  }
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  const std::string table = check_laws("const t = [" + numbers + "]\n");
  EXPECT_EQ(lines(table), 5) << table;
  EXPECT_NE(table.find("\n  -0.25, 1.25, 2.25, -3.25, "), std::string::npos) << table;
  EXPECT_EQ(lines(check_laws("const t = [" + names + "]\n")), 42);
  const std::string commented = check_laws("const t = [1.5, // one\n" + numbers + "]\n");
  EXPECT_NE(commented.find("  1.5,  // one\n  -0.25, 1.25,"), std::string::npos) << commented;
}

TEST(FormatTest, LawsHoldForTheCorpus) {
  for (const CorpusFile& file : corpus()) {
    SCOPED_TRACE(file.name);
    check_laws(file.text);
  }
}

// Checks the laws for each program of a page; returns how many there are. Blocks with more behind
// "cinch" may be parts of programs, or wrong.
int check_page(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  const std::string fence = "\n```cinch\n";
  int num_programs = 0;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at + 1)) {
    const std::size_t begin = at + fence.size();
    check_laws(text.substr(begin, text.find("\n```\n", begin) + 1 - begin));
    ++num_programs;
  }
  return num_programs;
}

// The programs that the language reference shows.
TEST(FormatTest, LawsHoldForTheLanguageReference) {
  const std::filesystem::path docs = CINCH_DOCS;
  int num_programs = check_page(docs / "language.md");
  for (const auto& page : std::filesystem::directory_iterator(docs / "language")) {
    SCOPED_TRACE(page.path());
    num_programs += check_page(page.path());
  }
  EXPECT_GE(num_programs, 20);
}

TEST(FormatTest, CanonicalProgramsStayAsTheyAre) {
  for (const CorpusFile& file : corpus()) {
    const std::string once = formatted(file.text);
    // Those of the corpus that line up their code by hand lose that, and nothing else.
    if (file.name == "error_feedback" || file.name == "powersgd" || file.name == "randomk" ||
        file.name == "search") {
      EXPECT_EQ(once, file.text) << file.name;
    }
  }
}

// A comment of every kind, or a blank line, in every gap between tokens where the program stays the
// same program.
TEST(FormatTest, LawsHoldWithACommentInEveryGap) {
  for (const CorpusFile& file : corpus()) {
    const std::string tree = dump(Parsed(file.text).module);
    std::size_t num_tried = 0;
    const std::size_t stride = is_sample_run() ? 7 : 1;
    for (std::size_t at = 0; at <= file.text.size(); at += stride) {
      const bool in_word = at > 0 && at < file.text.size() && std::isalnum(file.text[at - 1]) &&
                           std::isalnum(file.text[at]);
      if (in_word) continue;
      for (const std::string comment :
           {"/* c */", " // c\n", "\n// c\n", "/* c\n d */", "\n\n/* c */\n\n", "\n\n"}) {
        const std::string text = file.text.substr(0, at) + comment + file.text.substr(at);
        const Parsed parsed(text);
        if (parsed.sink.has_errors() || dump(parsed.module) != tree) continue;
        check_laws(text);
        ++num_tried;
        if (testing::Test::HasFailure()) return;
      }
    }
    EXPECT_GT(num_tried, 200u / stride) << file.name;
  }
}

// One token per line wherever that is the same program, and everything on one line where it is.
TEST(FormatTest, LayoutDoesNotDependOnLineEnds) {
  EXPECT_EQ(formatted("const A = f(\n  a,\n  b +\n  c\n)\n"), "const A = f(a, b + c)\n");
  EXPECT_EQ(formatted("compressor c{size k=n;wire{a:f32}\ndecode(w){w.a}}"),
            "compressor c {\n  size k = n\n  wire { a: f32 }\n  decode(w) { w.a }\n}\n");
}

TEST(FormatTest, LongThingsBreakAtTheirCommas) {
  const std::string name(40, 'a');
  EXPECT_EQ(formatted("const A = f(" + name + ", " + name + ", " + name + ")\n"),
            "const A = f(\n  " + name + ",\n  " + name + ",\n  " + name + "\n)\n");
}

TEST(FormatTest, LongChainsBreakBehindTheirOperators) {
  const std::string name(40, 'a');
  EXPECT_EQ(formatted("const A = " + name + " + " + name + " - " + name + "\n"),
            "const A = " + name + " +\n  " + name + " -\n  " + name + "\n");
}

TEST(FormatTest, LongWiresBreakAtTheirFields) {
  const std::string name(50, 'a');
  EXPECT_EQ(formatted("compressor c { wire { " + name + ": f32, b" + name + ": f32, } }\n"),
            "compressor c {\n  wire {\n    " + name + ": f32,\n    b" + name + ": f32\n  }\n}\n");
}

TEST(FormatTest, KeepsOneBlankLineBetweenStatementsAndNoneAtEdges) {
  EXPECT_EQ(formatted("compressor c {\n\n\n  size a = n\n\n\n  size b = n\n  size d = n\n\n}\n"),
            "compressor c {\n  size a = n\n\n  size b = n\n  size d = n\n}\n");
}

TEST(FormatTest, PutsABlankLineBetweenThingsWithBodies) {
  EXPECT_EQ(formatted("const A = 1\nfn f(x: f32) -> f32 { x }\n// about g\nfn g(x: f32) -> f32 { x "
                      "}\nconst B = 1\nconst C = 1\n"),
            "const A = 1\n\nfn f(x: f32) -> f32 { x }\n\n// about g\nfn g(x: f32) -> f32 { x }\n\n"
            "const B = 1\nconst C = 1\n");
}

TEST(FormatTest, CommentsAtLineEndsAreLinedUp) {
  EXPECT_EQ(formatted("const A = 1 // a\nconst Bcd = 10// b\n\nconst E = 1     // e\n"),
            "const A = 1     // a\nconst Bcd = 10  // b\n\nconst E = 1  // e\n");
}

TEST(FormatTest, CommentsStayWhereTheyStand) {
  const std::string text =
      "// top\n\n"
      "compressor c {  // opens\n"
      "  // before\n"
      "  size k = n  // behind\n"
      "\n"
      "  // alone\n"
      "\n"
      "  wire {\n"
      "    a: f32,  // first\n"
      "    // second\n"
      "    b: f32\n"
      "    // last\n"
      "  }\n"
      "  // end of c\n"
      "}\n"
      "// end of file\n";
  EXPECT_EQ(formatted(text), text);
}

TEST(FormatTest, LinesHaveNoBlanksAtTheirEnds) {
  EXPECT_EQ(formatted("const A = 1  \t// a \t\r\n/// doc  \r\nconst B = 2 /* x */  \n"),
            "const A = 1  // a\n/// doc\nconst B = 2 /* x */\n");
}

TEST(FormatTest, ShortBranchesStandOnOneLine) {
  const std::string head = "compressor c {\n  encode(g) {\n    ";
  EXPECT_EQ(
      formatted(head + "if a > k {\n low = 1\n } else {\n high = 2\n }\n let b = 1\n b\n}\n}\n"),
      head + "if a > k { low = 1 } else { high = 2 }\n    let b = 1\n    b\n  }\n}\n");
}

TEST(FormatTest, LoopsStandOnSeveralLines) {
  const std::string head = "compressor c {\n  encode(g) {\n    ";
  EXPECT_EQ(formatted(head + "for i in 0..3 { x = i }\n    x\n}\n}\n"),
            head + "for i in 0..3 {\n      x = i\n    }\n    x\n  }\n}\n");
}

TEST(FormatTest, EmptyFilesStayEmpty) {
  EXPECT_EQ(formatted(""), "");
  EXPECT_EQ(formatted("\n\n"), "");
  EXPECT_EQ(formatted("\n// c"), "// c\n");
}

}  // namespace
}  // namespace cinch::dsl
