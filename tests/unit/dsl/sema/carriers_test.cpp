// What carries sums: clauses `again`, what follows without one, and the carrier as a program.
#include <gtest/gtest.h>

#include "tests/unit/dsl/sema/check_fixture.h"

namespace cinch::sema {
namespace {

constexpr const char* kImports =
    "import std.sign\nimport std.quantize\nimport std.sparsify\nimport std.wrap\n";

rt::SumCarrier carrier_of(const std::string& expression) {
  Checked checked = check(kImports + ("compressor t = " + expression + "\n"));
  EXPECT_EQ(checked.all_lines(), "") << expression;
  return checked.program("t").info.carrier;
}

// A compressor with one state and these items.
std::string with_state(const std::string& items) {
  return "compressor t(ratio: f32 = 0.5 in (0, 1]) {\n"
         "  size k = clamp(ceil(ratio * n), 1, n)\n  state s: [f32; n] = 0\n"
         "  wire { value: [f32; k] }\n"
         "  encode(g: [f32; n]) {\n    s = s + g\n    wire { value: s[0..k] }\n  }\n"
         "  decode(w) { concat(w.value, fill(0.0, n - k)) }\n" +
         items + "}\n";
}

TEST(Carriers, OfCompositions) {
  struct Case {
    const char* program;
    rt::CarrierKind kind;
    const char* text;
    bool shares_draws = false;
  };
  using Kind = rt::CarrierKind;
  for (const Case& c : {
           Case{"topk", Kind::Itself, ""},
           Case{"error_feedback(topk)", Kind::Itself, ""},
           Case{"dgc(ratio: 0.02)", Kind::Program, "error_feedback(topk(ratio: 0.02))"},
           Case{"momentum(dgc(ratio: 0.02))", Kind::Program, "error_feedback(topk(ratio: 0.02))"},
           Case{"momentum(momentum(onebit))", Kind::Program, "onebit"},
           Case{"ef21(topk(ratio: 0.5))", Kind::Program, "error_feedback(topk(ratio: 0.5))"},
           Case{"error_feedback(randomk(ratio: 0.5), decay: 1)", Kind::Program,
                "error_feedback(randomk(ratio: 0.5), decay: 1)", true},
       }) {
    const std::string program = c.program;
    const rt::SumCarrier carrier = carrier_of(program);
    EXPECT_EQ(carrier.kind, c.kind) << program;
    EXPECT_EQ(carrier.text, c.text) << program;
    EXPECT_EQ(carrier.shares_draws, c.shares_draws) << program;
  }
}

TEST(Carriers, OfStates) {
  const auto carrier = [](const std::string& items) {
    Checked checked = check(with_state(items));
    EXPECT_EQ(checked.all_lines(), "") << items;
    return checked.program("t").info.carrier;
  };
  EXPECT_EQ(carrier("  claims conserves(s)\n").kind, rt::CarrierKind::Itself);
  EXPECT_EQ(carrier("  again exact\n").kind, rt::CarrierKind::Exact);
  const rt::SumCarrier none = carrier("");
  EXPECT_EQ(none.kind, rt::CarrierKind::None);
  EXPECT_TRUE(contains(none.text, "`conserves(s)`")) << none.text;
  EXPECT_EQ(
      carrier("  finish(sum) {\n    s = s + sum\n    s\n  }\n  claims conserves(s), local\n").kind,
      rt::CarrierKind::None);
}

// `again` and `shared` are names elsewhere.
TEST(Carriers, WordsStayNames) {
  Checked checked = check(in_encode("let again = 1.0\n    let shared = again * g"));
  EXPECT_EQ(checked.find(dsl::DiagKind::Expected), nullptr);
}

TEST(Carriers, ParametersFollowTheProgram) {
  Checked checked = check(kImports + std::string("compressor t = dgc\n"));
  const auto program =
      elaborate_carrier(*checked.module, "t", {{"ratio", 0.25}, {"momentum", 0.5}}, *checked.sink);
  ASSERT_TRUE(program) << checked.all_lines();
  EXPECT_EQ(program->info.name, "t.again");
  std::string params;
  for (const rt::ParamInfo& param : program->info.params) params += param.name + " ";
  EXPECT_EQ(params, "again.decay ratio ");
  EXPECT_EQ(program->info.params[1].default_value, 0.25);
  EXPECT_EQ(program->declared_defaults[1], 0.001);
  EXPECT_FALSE(elaborate_carrier(*check(kImports + std::string("compressor t = topk\n")).module,
                                 "t", {}, *checked.sink));
}

TEST(Carriers, Mistakes) {
  const auto code_of = [](const std::string& text) {
    Checked checked = check(text);
    return checked.all_lines();
  };
  const std::string imports = kImports;
  EXPECT_TRUE(contains(code_of(with_state("  again exact\n  again exact\n")), "`again`"));
  EXPECT_TRUE(contains(code_of(imports + with_state("  again signum\n")), "S092"));
  EXPECT_TRUE(contains(code_of(with_state("  again t\n")), "S092"));
  EXPECT_EQ(code_of(imports + with_state("  again signsgd\n")), "");
  EXPECT_TRUE(contains(code_of(imports + with_state("  again topk(ratio: 2 * ratio)\n")), "S0"));
  EXPECT_TRUE(contains(code_of(imports + with_state("  again momentum(t)\n")), "S091"));
  EXPECT_TRUE(
      contains(code_of(imports + "compressor t = error_feedback(momentum(topk))\n"), "S094"));
  EXPECT_TRUE(contains(code_of(imports + "compressor t = error_feedback(qsgd)\n"), "S095"));
  EXPECT_FALSE(contains(code_of(imports + "compressor t = error_feedback(natural)\n"), "S095"));
}

}  // namespace
}  // namespace cinch::sema
