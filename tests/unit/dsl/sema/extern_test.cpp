// Declarations of C++ functions, with a made-up reader of headers.
#include <gtest/gtest.h>

#include "dsl/sema/sema.h"

namespace cinch::sema {
namespace {

using dsl::DiagKind;

constexpr std::string_view kProgram =
    "extern fn f(x: f32, y: i8) -> u16 from \"a.h\"\n"
    "extern fn g(x: f32) -> f32 from \"a.h\"\n"
    "compressor t {\n"
    "  wire { first: [u16; n], second: [f32; n] }\n"
    "  encode(x: [f32; n]) { wire { first: (f(x, 3) + f(g(x), -1)) as u16, second: g(x * 2) } }\n"
    "  decode(w) { w.second }\n"
    "}\n";

struct ExternRun {
  dsl::SourceSet sources;
  dsl::DiagSink sink;
  std::vector<rt::ExternRequest> requests;
  std::optional<CheckedProgram> program;

  explicit ExternRun(const std::function<rt::ExternReply(const rt::ExternRequest&)>& answer) {
    const dsl::FileId file = sources.add("folder/main.cinch", std::string(kProgram)).id();
    const ExternReader reader = [&](const rt::ExternRequest& request) {
      requests.push_back(request);
      return answer(request);
    };
    const CheckedModule module = check_module(
        sources, file, [](const ImportRequest&) { return std::vector<LoadedText>(); }, sink,
        CheckDepth::Names, reader);
    program = elaborate(module, "t", {}, sink);
  }
};

rt::ExternReply found(const rt::ExternRequest& request, const std::string& text) {
  return {.outcome = rt::ExternOutcome::Found,
          .source = "text of " + request.name,
          .work = 7,
          .files = {{"folder/a.h", text}}};
}

TEST(SemaExtern, ReadsEachFunctionOnce) {
  const ExternRun run([](const rt::ExternRequest& request) { return found(request, "header"); });
  ASSERT_TRUE(run.program.has_value());
  ASSERT_EQ(run.requests.size(), 2u);
  EXPECT_EQ(run.requests[0].header, "a.h");
  EXPECT_EQ(run.requests[0].from, "folder/main.cinch");
  EXPECT_EQ(run.requests[0].name, "f");
  EXPECT_EQ(run.requests[0].params, (std::vector<DType>{kF32, kI8}));
  EXPECT_EQ(run.requests[0].result, make_uint(16));
  const auto externs = run.program ? run.program->info.externs : std::vector<rt::ExternInfo>();
  ASSERT_EQ(externs.size(), 2u);
  EXPECT_EQ(externs[0].name, "f");
  EXPECT_EQ(externs[0].source, "text of f");
  EXPECT_EQ(externs[0].work, 7u);
  EXPECT_NE(externs[0].digest, externs[1].digest);
  EXPECT_NE(run.sources.find_name("folder/a.h"), nullptr);
}

TEST(SemaExtern, HeadersMayNotChangeWhileAProgramIsRead) {
  int calls = 0;
  const ExternRun run([&](const rt::ExternRequest& request) {
    return found(request, ++calls == 1 ? "header" : "another");
  });
  EXPECT_FALSE(run.program);
  ASSERT_EQ(run.sink.num_errors(), 1u);
  EXPECT_EQ(run.sink.all()[0].kind, DiagKind::ExternHeader);
  EXPECT_EQ(message(run.sink.all()[0]),
            "the header \"a.h\" cannot be used: 'folder/a.h' changed while the program was read");
}

TEST(SemaExtern, MistakesHaveBothPlaces) {
  const ExternRun run([](const rt::ExternRequest&) {
    return rt::ExternReply{.outcome = rt::ExternOutcome::Refused,
                           .message = "a global variable",
                           .notes = {{"found here", "folder/a.h", 2, 4}, {"of no place", "", 0, 0}},
                           .files = {{"folder/a.h", "header"}}};
  });
  EXPECT_FALSE(run.program);
  ASSERT_FALSE(run.sink.all().empty());
  const dsl::Diagnostic& diag = run.sink.all()[0];
  EXPECT_EQ(diag.kind, DiagKind::ExternRefused);
  EXPECT_EQ(run.sources.find(diag.span.file)->text(diag.span), "f");
  ASSERT_EQ(diag.notes.size(), 2u);
  const dsl::Span place = diag.notes[0].span.value_or(dsl::Span());
  ASSERT_TRUE(place.has_file());
  EXPECT_EQ(run.sources.find(place.file)->name(), "folder/a.h");
  EXPECT_EQ(place.begin, 2u);
  EXPECT_FALSE(diag.notes[1].span);
}

}  // namespace
}  // namespace cinch::sema
