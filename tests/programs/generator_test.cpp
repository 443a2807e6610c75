// Random programs: interpreter against CPU. CINCH_TEST_PROGRAMS says how many (default: one round
// of the table), and CINCH_TEST_FIRST from which; a failure prints the program.
#include <gtest/gtest.h>

#include <algorithm>

#include "dsl/sema/builtins.h"
#include "runtime/core/scalar_op.h"
#include "tests/environment.h"
#include "tests/programs/generator/generator.h"
#include "tests/programs/harness/matrix.h"
#include "tests/programs/harness/oracle.h"

namespace cinch::testing {
namespace {

// Few cases each: breadth comes from the number of programs.
constexpr std::pair<std::int64_t, DataKind> kCases[] = {{1, DataKind::Normal},
                                                        {33, DataKind::HeavyTailed},
                                                        {1025, DataKind::Normal},
                                                        {2500, DataKind::Sparse}};

std::string run_case(const Compiled& compiled,
                     const std::shared_ptr<const rt::LoadedProgram>& loaded, std::int64_t n,
                     DataKind kind, std::uint32_t threads) {
  rt::SessionOptions options;
  options.rows = n;
  options.seed = 11;
  options.threads = threads;
  options.groups_per_task = threads > 1 ? 1 : 0;
  options.poison_memory = true;
  auto session = rt::Session::open(loaded, options);
  if (!session) return "open: " + session.error().message;
  Oracle oracle(compiled.oracle, loaded->image(), options);
  for (std::uint64_t step = 0; step < 2; ++step) {
    const auto gradient = make_gradient(kind, n, step + 1);
    const std::string difference =
        compare(oracle.step(gradient, step), run_step(*session, gradient, step));
    if (!difference.empty()) {
      return std::to_string(n) + " elements, step " + std::to_string(step) + ", " +
             loaded->image().target + ": " + difference;
    }
  }
  return {};
}

std::string run_program(const GeneratedProgram& generated) {
  const auto file = make_program(generated.name, generated.text);
  if (!file) return "directives";
  const auto compiled = compile(*file);
  if (!compiled) return compiled.error();
  const Architectures archs = architectures();
  for (std::size_t i = 0; i < archs.present.size(); ++i) {
    // All levels in long runs; else the lowest and the highest.
    if (!is_long_run() && i != 0 && i + 1 != archs.present.size()) continue;
    const auto loaded = load_for(compiled->kernels, archs.present[i]);
    if (!loaded) return loaded.error();
    for (const auto& [n, kind] : kCases) {
      std::string difference = run_case(*compiled, *loaded, n, kind, i == 0 ? 1 : 4);
      if (!difference.empty()) return difference;
    }
  }
  return {};
}

TEST(Generator, ProgramsAgree) {
  const std::uint64_t first = number_from("CINCH_TEST_FIRST", 0);
  const std::uint64_t count =
      number_from("CINCH_TEST_PROGRAMS", programs_per_round() * (is_long_run() ? 20 : 1));
  for (std::uint64_t i = first; i < first + count; ++i) {
    const GeneratedProgram generated = generate_program(i);
    const std::string difference = run_program(generated);
    EXPECT_TRUE(difference.empty()) << difference << "\n" << generated.text;
  }
}

TEST(Generator, OneRoundReachesEveryOperator) {
  std::map<std::string, int> uses;
  for (std::uint64_t i = 0; i < programs_per_round(); ++i) {
    for (const auto& [name, times] : generate_program(i).uses) uses[name] += times;
  }
  for (const std::string& name : generator_operators()) EXPECT_GT(uses[name], 0) << name;
}

// The tables of the language decide what "every operator" is.
TEST(Generator, TheTableHoldsTheWholeLanguage) {
  std::map<std::string, std::string> other_names = {
      {"unpack", "pack"}, {"add", "+"}, {"sub", "-"},     {"mul", "*"},    {"div", "/"},
      {"mod", "%"},       {"eq", "=="}, {"ne", "!="},     {"lt", "<"},     {"le", "<="},
      {"gt", ">"},        {"ge", ">="}, {"bit_and", "&"}, {"bit_or", "|"}, {"bit_xor", "^"},
      {"shl", "<<"},      {"shr", ">>"}};
  const std::vector<std::string> operators = generator_operators();
  const auto expect_known = [&](std::string name) {
    if (other_names.contains(name)) name = other_names[name];
    EXPECT_NE(std::find(operators.begin(), operators.end(), name), operators.end()) << name;
  };
  for (std::size_t i = 0; i < sema::num_builtins(); ++i) {
    const sema::BuiltinInfo& info = sema::builtin_info(static_cast<sema::BuiltinId>(i));
    // Collectives stand in sync bodies only, which run over ranks.
    if (info.group != sema::BuiltinGroup::Collective) expect_known(std::string(info.name));
  }
  for (int i = 0; i < kNumScalarOps; ++i) {
    expect_known(std::string(scalar_op_info(static_cast<ScalarOp>(i)).name));
  }
}

}  // namespace
}  // namespace cinch::testing
