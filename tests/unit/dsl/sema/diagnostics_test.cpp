// Every diagnostic of the checker is produced, at the right place. The programs are those of
// tests/lit/check: their CHECK lines say what is expected, here word for word.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/unit/dsl/sema/check_fixture.h"

namespace cinch::sema {
namespace {

using dsl::DiagKind;

std::vector<std::filesystem::path> cases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(CINCH_CHECK_CASES)) {
    if (entry.path().extension() == ".cinch") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// `L:C: error[CODE]: message` of every CHECK line.
std::vector<std::string> expected_errors(const std::string& text) {
  std::vector<std::string> expected;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(".cinch:");
    if (line.starts_with("// CHECK: ") && at != std::string::npos)
      expected.push_back(line.substr(at + 7));
  }
  return expected;
}

std::vector<std::string> found_errors(const Checked& checked) {
  std::vector<std::string> found;
  for (const dsl::Diagnostic& diag : checked.sink->all()) {
    const dsl::LineColumn at = checked.sources->find(diag.span.file)->position(diag.span.begin);
    found.push_back(std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
                    std::string(dsl::severity_name(diag.severity())) + "[" +
                    std::string(diag.code()) + "]: " + dsl::message(diag));
  }
  return found;
}

void note_codes(const Checked& checked, std::set<std::string>& codes) {
  for (const dsl::Diagnostic& diag : checked.sink->all()) codes.insert(std::string(diag.code()));
}

TEST(SemaDiagnostics, CasesReportWhatTheySay) {
  ASSERT_GT(cases().size(), 50u);
  for (const auto& path : cases()) {
    const std::string text = read_file(path);
    const Checked checked = check(text);
    EXPECT_EQ(found_errors(checked), expected_errors(text)) << path;
  }
}

const char* const kWrapper =
    "compressor wrap(inner: compressor) { wire inner.wire }\n"
    "extern fn soft(x: f32) -> f32 from \"soft.h\"\n"
    "compressor calls {\n  wire { value: [f32; n] }\n"
    "  encode(g: [f32; n]) { wire { value: map(g, |a| soft(a)) } }\n  decode(w) { w.value }\n}\n"
    "compressor open(a: f32) {\n  wire { value: [f32; n] }\n"
    "  encode(g: [f32; n]) { wire { value: g * a } }\n  decode(w) { w.value }\n}\n";

Checked elaborated(const std::string& name) {
  Checked checked = check(kWrapper);
  EXPECT_EQ(checked.all_lines(), "");
  EXPECT_FALSE(elaborate(*checked.module, name, {}, *checked.sink).has_value());
  return checked;
}

TEST(SemaDiagnostics, ElaborationRefusesWhatCheckingAccepts) {
  EXPECT_NE(elaborated("wrap").find(DiagKind::NeedsInner), nullptr);
  EXPECT_NE(elaborated("calls").find(DiagKind::ExternNotCompiled), nullptr);
  EXPECT_NE(elaborated("open").find(DiagKind::ParameterUnbound), nullptr);
  const Checked unknown = elaborated("opne");
  ASSERT_NE(unknown.find(DiagKind::UnknownCompressor), nullptr);
  EXPECT_EQ(unknown.sink->all()[0].notes[0].text, "did you mean `open`?");
}

Checked many_draws() {
  std::string text = "fn f0(x: f32) -> f32 { x + sum(random(1)) }\n";
  for (int i = 1; i <= 16; ++i) {
    text += fmt::format("fn f{0}(x: f32) -> f32 {{ f{1}(x) + f{1}(x) }}\n", i, i - 1);
  }
  return check(text + in_encode("let x = f16(g[0])"));
}

// Calls in one another, five hundred and more.
Checked deep_calls() {
  std::string text = "fn f0(x: f32) -> f32 { x }\n";
  for (int i = 1; i <= 600; ++i) {
    text += fmt::format("fn f{0}(x: f32) -> f32 {{ f{1}(x) }}\n", i, i - 1);
  }
  return check(text);
}

TEST(SemaDiagnostics, WorkIsBounded) {
  const Checked draws = many_draws();
  EXPECT_NE(draws.find(DiagKind::TooLarge), nullptr) << draws.all_lines();
  const Checked calls = deep_calls();
  EXPECT_NE(calls.find(DiagKind::TooMany), nullptr) << calls.all_lines();
}

const std::map<std::string, std::string> kFiles = {
    {"a.cinch", "fn twice(x: f32) -> f32 { x * 2 }\n"},
    {"b.cinch", "fn twice(x: f32) -> f32 { x + x }\n"},
    {"loop.cinch", "import \"main.cinch\"\n"}};

TEST(SemaDiagnostics, ImportsThatLoopOrClash) {
  const Checked loop = check("import \"loop.cinch\"\n", kFiles);
  EXPECT_NE(loop.find(DiagKind::ImportLoop), nullptr) << loop.all_lines();
  const std::string both = "import \"a.cinch\"\nimport \"b.cinch\"\n";
  const Checked clash = check(both + in_encode("let x = twice(g[0])"), kFiles);
  EXPECT_NE(clash.find(DiagKind::AmbiguousName), nullptr) << clash.all_lines();
  const Checked named = check(both + in_encode("let x = a.twice(g[0]) + b.twice(1)"), kFiles);
  EXPECT_EQ(named.all_lines(), "");
}

// A declaration of a C++ function about which the reader of headers says this.
Checked with_extern(rt::ExternOutcome outcome, const std::string& type = "f32") {
  return check("extern fn f(x: " + type + ") -> f32 from \"a.h\"\n", {},
               [outcome](const rt::ExternRequest&) {
                 return rt::ExternReply{.outcome = outcome, .message = "what it is"};
               });
}

TEST(SemaDiagnostics, ExternsAreReportedAsTheReaderSays) {
  using enum rt::ExternOutcome;
  EXPECT_EQ(with_extern(Found).all_lines(), "");
  EXPECT_EQ(with_extern(HeaderBroken).all_lines(),
            "1:33: S082 the header \"a.h\" cannot be used: what it is\n");
  EXPECT_EQ(with_extern(NotFound).all_lines(),
            "1:33: S083 the header \"a.h\" declares no function `f`\n");
  EXPECT_EQ(with_extern(Mismatch).all_lines(),
            "1:11: S084 no function `f` of \"a.h\" has these types\n");
  EXPECT_EQ(with_extern(Ambiguous).all_lines(),
            "1:11: S085 \"a.h\" has several functions `f` of these types\n");
  EXPECT_EQ(with_extern(Refused).all_lines(),
            "1:11: S086 `f` cannot be called in a kernel: it has what it is\n");
  EXPECT_EQ(with_extern(Found, "bf16").all_lines(),
            "1:16: S081 `bf16` cannot be passed to or from C++\n");
}

TEST(SemaDiagnostics, EveryKindIsProducedByATest) {
  std::set<std::string> codes;
  for (const auto& path : cases()) note_codes(check(read_file(path)), codes);
  for (const char* name : {"wrap", "calls", "open", "opne"}) note_codes(elaborated(name), codes);
  using enum rt::ExternOutcome;
  for (const auto outcome : {HeaderBroken, NotFound, Mismatch, Ambiguous, Refused}) {
    note_codes(with_extern(outcome), codes);
  }
  note_codes(with_extern(Found, "f16"), codes);
  note_codes(many_draws(), codes);
  note_codes(deep_calls(), codes);
  note_codes(check("import \"loop.cinch\"\n", kFiles), codes);
  note_codes(
      check("import \"a.cinch\"\nimport \"b.cinch\"\n" + in_encode("let x = twice(g[0])"), kFiles),
      codes);
  for (const dsl::DiagInfo& info : dsl::kDiagTable) {
    if (!info.code.starts_with("S")) continue;
    EXPECT_TRUE(codes.contains(std::string(info.code))) << info.code << " " << info.name;
  }
}

TEST(SemaDiagnostics, NotesSayWhatHelps) {
  const char* const copy = "a copy can change: `let mut copy = ";
  const struct {
    std::string statements, line, note;
  } cases[] = {
      {"for i in 0..3 { i = 4 }", "`i` cannot be assigned: it is a loop variable",
       "the loop alone counts"},
      {"let x = map(g, |a| { a = 1.0; a })",
       "`a` cannot be assigned: it is a parameter of the lambda", copy},
      {"g = g + 1", "`g` cannot be assigned: it is an argument", copy},
      {"let x = 1.0\nx = 2.0", "`x` cannot be assigned: it is not mutable",
       "`let mut` would let it change"},
      {"let mut x = g\nx[bitcast<u32>(g)] += 1.0", "an index of this store may repeat",
       "`x += scatter_add(e, at: i, size: len(x))`"},
      {"let mut x = g\nx[bitcast<u32>(g)] = 1.0", "an index of this store may repeat",
       "`scatter(e, at: i, size: len(x), keep: last)`"},
      {"let mut x = g as u8\nx[0] += 1", "cannot assign i32 to `x[…]`, which is u8",
       "convert it: `as u8`"},
      {"let mut x = g as f16\nx[0] &= 0xf", "cannot apply `&` to f16", "`bitcast<u16>(x)`"},
      {"let x = kth_largest(chunk(g, 4), 2, axis: 0)", "expected `axis: 1`, rows, found `axis: 0`",
       "`kth_largest(transpose(m), k, axis: 1)`"},
      {"let m = chunk(g, 4)\nlet x = transpose(m)[5]", "this rule is not met: index 5 is below 4",
       "here 5 >= 4"},
      {"let a = filter(g, where: g > 0)\nlet b = filter(g, where: g < 0)\nlet x = a + b",
       "cannot add [f32; len(a)] and [f32; len(b)]", "`len(a)` comes from here"},
      {"let x = top_k(g, -1)[0]", "the size -1 is not negative", "here -1 < 0"},
  };
  for (const auto& each : cases) {
    const Checked checked = check(in_encode(each.statements));
    ASSERT_EQ(checked.sink->all().size(), 1u) << each.statements << "\n" << checked.all_lines();
    EXPECT_TRUE(contains(checked.all_lines(), each.line)) << checked.all_lines();
    const auto& notes = checked.sink->all()[0].notes;
    EXPECT_TRUE(std::ranges::any_of(notes, [&](const auto& note) {
      return contains(note.text, each.note);
    })) << each.statements;
  }
}

TEST(SemaDiagnostics, NotesSayWhereSizesComeFrom) {
  const Checked checked =
      check(in_encode("let a = fill(0.5, k)\nlet x = g + a", "size k = clamp(n / 2, 1, n)\n"));
  const dsl::Diagnostic* diag = checked.find(DiagKind::CannotCombine);
  ASSERT_NE(diag, nullptr);
  EXPECT_EQ(dsl::message(*diag), "cannot add [f32; n] and [f32; k]");
  ASSERT_EQ(diag->notes.size(), 2u);
  EXPECT_EQ(diag->notes[0].text, "`n` comes from here");
  EXPECT_EQ(checked.sources->find(0)->position(diag->notes[1].span->begin).line, 2u);
}

TEST(SemaDiagnostics, NamesThatAreNearlyRightAreSuggested) {
  const Checked checked =
      check(in_encode("let velocity = g\nlet x = velocty + 1\nlet y = sqrrt(g)"));
  ASSERT_EQ(checked.sink->all().size(), 2u);
  EXPECT_EQ(checked.sink->all()[0].suggestion->replacement, "velocity");
  EXPECT_EQ(checked.sink->all()[1].suggestion->replacement, "sqrt");
}

}  // namespace
}  // namespace cinch::sema
