// Whole programs elaborate: those of the language's description, the standard library, wrappers
// in wrappers; and what the checked program says about them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>

#include "runtime/core/params.h"
#include "runtime/core/sizes/host_expr.h"
#include "tests/unit/dsl/sema/check_fixture.h"

namespace cinch::sema {
namespace {

TEST(SemaPrograms, AllOfTheLanguagesDescription) {
  Checked checked = check(read_file(std::string(CINCH_PROGRAMS) + "/language.cinch"));
  ASSERT_EQ(checked.all_lines(), "");
  int elaborated = 0;
  for (const CompressorEntry& entry : checked.module->compressors()) {
    if (entry.is_wrapper) continue;
    const CheckedProgram program = checked.program(entry.name);
    EXPECT_EQ(dump(program), dump(checked.program(entry.name)));
    ++elaborated;
  }
  EXPECT_EQ(elaborated, 7);
}

TEST(SemaPrograms, EveryOperator) {
  const std::string text = read_file(std::string(CINCH_PROGRAMS) + "/operators.cinch");
  Checked checked = check(text);
  ASSERT_EQ(checked.all_lines(), "");
  const std::string shown =
      dump(checked.program("all_of_them")) + dump(checked.program("protocol"));
  for (std::size_t i = 0; i < num_builtins(); ++i) {
    const BuiltinInfo& info = builtin_info(static_cast<BuiltinId>(i));
    const bool becomes_another = info.name == "len" || info.name == "slice" ||
                                 info.name == "floor_div" || info.name == "median" ||
                                 info.name == "quantile" || info.name == "stack" ||
                                 info.name == "flip" || info.name == "outer";
    if (becomes_another) continue;
    EXPECT_TRUE(contains(shown, std::string(info.name) + "(")) << info.name;
  }
}

// Functions that compressors of the library share.
bool is_of_parts(const std::filesystem::path& path) {
  return path.parent_path().filename() == "parts";
}

TEST(SemaPrograms, StandardLibrary) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(CINCH_STDLIB)) {
    if (entry.path().extension() != ".cinch") continue;
    ++files;
    Checked checked = check(read_file(entry.path()));
    EXPECT_EQ(checked.all_lines(), "") << entry.path();
    if (is_of_parts(entry.path())) continue;
    ASSERT_EQ(checked.module->compressors().size(), 1u) << entry.path();
    const CompressorEntry compressor = checked.module->compressors()[0];
    EXPECT_EQ(compressor.name, entry.path().stem()) << entry.path();
    EXPECT_TRUE(contains(compressor.doc, "Paper: ")) << entry.path();
    EXPECT_TRUE(contains(compressor.doc, "Stores: ")) << entry.path();
    if (!compressor.is_wrapper) checked.program(compressor.name);
  }
  EXPECT_GE(files, 16);
}

// All programs except wrappers and protocols.
std::vector<std::string> encoders_of_the_library() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(CINCH_STDLIB)) {
    if (entry.path().extension() != ".cinch" || is_of_parts(entry.path())) continue;
    const std::string text = read_file(entry.path());
    const bool is_wrapper = contains(text, "inner: compressor");
    const bool is_encoder = contains(text, "\n  encode(");
    if (!is_wrapper && is_encoder && !contains(text, "\n  sync("))
      names.push_back(entry.path().stem());
  }
  return names;
}

TEST(SemaPrograms, MomentumTwiceAroundEveryCompressorOfTheLibrary) {
  const std::vector<std::string> encoders = encoders_of_the_library();
  EXPECT_GE(encoders.size(), 16u);
  for (const std::string& inner : encoders) {
    Checked checked = check(
        "import std.sign\nimport std.quantize\nimport std.sparsify\nimport std.wrap\n"
        "compressor both = momentum(momentum(" +
        inner + "))\n");
    ASSERT_EQ(checked.all_lines(), "") << inner;
    const CheckedProgram program = checked.program("both");
    EXPECT_EQ(program.info.states[0].name.substr(0, 6), "inner.") << inner;
  }
}

TEST(SemaPrograms, NamesOfOpenParameters) {
  Checked checked = check(
      "import std.sparsify\nimport std.wrap\n"
      "compressor twice = momentum(momentum(topk))\n"
      "compressor fixed = twice(factor: 0.5)\n");
  ASSERT_EQ(checked.all_lines(), "");
  const auto names = [](const CheckedProgram& program) {
    std::string text;
    for (const auto& param : program.info.params) text += param.name + " ";
    return text;
  };
  EXPECT_EQ(names(checked.program("twice")), "factor inner.factor ratio ");
  EXPECT_EQ(names(checked.program("fixed")), "factor ratio ");
}

// A composition fixes it, or it stays open: what a wrapper sets is made of either.
TEST(SemaPrograms, ParametersThatWrappersSet) {
  Checked checked = check(
      "import std.sparsify\nimport std.wrap\n"
      "compressor open = warmup(error_feedback(topk), epochs: 4, epoch: 10)\n"
      "compressor fixed = open(ratio: 0.25)\n");
  ASSERT_EQ(checked.all_lines(), "");
  const auto sizes_at = [&](const char* name, std::int64_t step) {
    const CheckedProgram program = checked.program(name);
    const HostValue params[] = {HostValue::from_f64(0.25), HostValue::from_f64(0.25)};
    HostEnv env{.n = 1000, .rows = 1000, .step = step, .params = params};
    return program.info.exprs->eval_int(program.info.sizes.at(0).value, env).value();
  };
  for (const char* name : {"open", "fixed"}) {
    EXPECT_EQ(sizes_at(name, 0), 758) << name;  // 0.25 to the power of a fifth
    EXPECT_EQ(sizes_at(name, 39), 330) << name;
    EXPECT_EQ(sizes_at(name, 40), 250) << name;
  }
}

// As f32, 0.001 is above 0.001, and one element more would be kept of most of these tensors.
TEST(SemaPrograms, SizesSeeParametersAsGiven) {
  Checked checked = check(
      "import std.sparsify\nimport std.wrap\n"
      "compressor open = topk\n"
      "compressor fixed = topk(ratio: 0.001)\n"
      "compressor warm = warmup(topk, epochs: 0)\n"
      "fn share(ratio: f32, of: f32) -> f32 { ceil(ratio * of) }\n"
      "compressor own(ratio: f32 = 0.001) {\n"
      "  size k = clamp(share(ratio, n), 1, n)\n"
      "  wire { value: [f32; k] }\n"
      "  encode(g: [f32; n]) { wire { value: g[0..k] } }\n"
      "  decode(w) { fill(0.0, n) }\n"
      "}\n");
  ASSERT_EQ(checked.all_lines(), "");
  for (const char* name : {"open", "fixed", "warm", "own"}) {
    const CheckedProgram program = checked.program(name);
    std::vector<HostValue> params;
    for (const rt::ParamInfo& param : program.info.params) {
      const double value = param.name == "ratio" ? 0.001 : param.default_value;
      params.push_back(make_param_value(param.dtype, host_type_of(param.dtype), value));
    }
    for (std::int64_t m = 1; m < 200; ++m) {
      const HostEnv env{.n = 1000 * m, .rows = 1000 * m, .params = params};
      const auto k = program.info.exprs->eval_int(program.info.sizes.at(0).value, env);
      EXPECT_EQ(k.value(), m) << name;
    }
  }
}

TEST(SemaPrograms, FieldsThatAscendAreFoundInEncode) {
  Checked checked = check(
      "import std.sparsify\n"
      "compressor a {\n"
      "  size k = ceil_div(n, 8)\n"
      "  wire { index: [u32; k], value: [f32; k] }\n"
      "  encode(g: [f32; n]) {\n"
      "    let index = top_k(abs(g), k)\n"
      "    wire { index, value: g[index] }\n"
      "  }\n"
      "  decode(w) { scatter(w.value, at: w.index, size: n) }\n"
      "}\n"
      "compressor b = threshold\n");
  const CheckedProgram top = checked.program("a");
  EXPECT_TRUE(top.info.wire.fields[0].ascending);
  EXPECT_EQ(top.info.wire.fields[0].index_limit, CheckedProgram(top).info.exprs->n());
  EXPECT_FALSE(top.info.wire.fields[1].ascending);
  const CheckedProgram threshold = checked.program("b");
  EXPECT_TRUE(threshold.info.wire.fields[0].ascending);
  ASSERT_EQ(threshold.info.wire.counts.size(), 1u);
  EXPECT_TRUE(contains(dump(threshold), "size n unique in_bounds"));
}

TEST(SemaPrograms, SharedDrawsOfDecodeAreThoseOfEncode) {
  Checked checked =
      check("import std.sparsify\nimport std.wrap\ncompressor ef = error_feedback(randomk)\n");
  const CheckedProgram program = checked.program("ef");
  std::vector<std::uint32_t> sites;
  for (const Expr& e : program.exprs) {
    if (e.kind == ExprKind::Builtin && e.builtin == BuiltinId::random_index)
      sites.push_back(e.site);
  }
  ASSERT_EQ(sites.size(), 3u);  // encode's, the decode inlined in encode, and decode's
  EXPECT_EQ(sites[0], sites[1]);
  EXPECT_EQ(sites[0], sites[2]);
  EXPECT_EQ(sites[0] >> 16, 1u);  // the wrapped compressor's own numbers
  EXPECT_TRUE(program.info.decode_draws);
}

TEST(SemaPrograms, BindingsFixConstantsAndMoveDefaults) {
  Checked checked = check("import std.quantize\ncompressor q = qsgd\ncompressor t = tbq\n");
  const CheckedProgram q = checked.program("q", {{"bits", 8}});
  EXPECT_EQ(q.info.wire.fields[1].type.dtype, *make_int(8));
  const CheckedProgram t = checked.program("t", {{"tau", 0.25}});
  EXPECT_EQ(t.info.params[0].default_value, 0.25);
  EXPECT_EQ(t.declared_defaults[0], checked.program("t", {}).info.params[0].default_value);
  EXPECT_FALSE(elaborate(*checked.module, "q", {{"bits", 9}}, *checked.sink).has_value());
  EXPECT_TRUE(contains(checked.all_lines(), "the parameter `bits` is 9, outside [2, 8]"));
}

TEST(SemaPrograms, IntegersOf63BitsAndMore) {
  const Checked checked = check(in_encode("let x = 9223372036854775808 as f64"));
  EXPECT_EQ(checked.all_lines(), "");
  const auto has_literal = [](const CheckedProgram& program, double number) {
    return std::ranges::any_of(program.exprs, [&](const Expr& expr) {
      return expr.kind == ExprKind::Literal && expr.bits == std::bit_cast<std::uint64_t>(number);
    });
  };
  const char* const head = "compressor t(u: u64 = 1, f: f32 = 18446744073709551615) {\n";
  Checked literals = check(std::string(head) +
                           "  wire { x: [f32; n] }\n"
                           "  encode(g: [f32; n]) {\n"
                           "    wire { x: g * 18446744073709551615 + (9223372036854775808 as f32) "
                           "+ (9223372586610589697 as f32) }\n  }\n"
                           "  decode(w) { w.x }\n}\n");
  const CheckedProgram program = literals.program("t", {{"u", 9007199254740992.0}});
  EXPECT_TRUE(has_literal(program, 18446744073709551616.0));
  EXPECT_TRUE(has_literal(program, 9223372036854775808.0));
  // A little above the middle of two neighbours: rounded once, it goes up.
  EXPECT_TRUE(has_literal(program, 9223373136366403584.0));
  EXPECT_EQ(program.info.params[0].default_value, 9007199254740992.0);
  EXPECT_EQ(program.info.params[1].default_value, 18446744073709551615.0);
  EXPECT_FALSE(
      elaborate(*literals.module, "t", {{"u", 9007199254740994.0}}, *literals.sink).has_value());
  EXPECT_TRUE(contains(literals.all_lines(),
                       "the parameter `u` is 9007199254740994, outside [-2^53, 2^53]"));
}

TEST(SemaPrograms, WrapperOfAMatrixCompressorAndFinish) {
  Checked checked = check(
      "import std.wrap\n"
      "compressor rows {\n  state last: [f32; r, c] = 0\n"
      "  wire { top: [f32; r, 1] }\n"
      "  encode(g: [f32; r, c]) { wire { top: max(g, axis: 1) } }\n"
      "  decode(w) { w.top + fill(0.0, r * c)[0] + 0 * reshape(iota(r * c) as f32, r, c) }\n"
      "  finish(sum) {\n    last = 0.5 * last + sum\n    last\n  }\n}\n"
      "compressor heavy = momentum(rows)\n");
  ASSERT_EQ(checked.all_lines(), "");
  const CheckedProgram program = checked.program("heavy");
  EXPECT_TRUE(program.info.is_matrix);
  EXPECT_TRUE(program.info.has_finish);
  ASSERT_TRUE(program.finish.has_value());
}

}  // namespace
}  // namespace cinch::sema
