// Random programs: interpreter against CPU, all levels. CINCH_TEST_PROGRAMS says how many (default:
// one round of the table), and CINCH_TEST_FIRST from which; a failure prints the program. Many more
// run without a compiler: random_programs, program_search.
#include <gtest/gtest.h>

#include <algorithm>

#include "dsl/sema/builtins.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "tests/environment.h"
#include "tests/programs/generator/generator.h"
#include "tests/programs/generator/trial.h"

namespace cinch::testing {
namespace {

// Few cases each: breadth comes from the number of programs.
const std::vector<Size> kSizes = {{1, DataKind::Normal},
                                  {33, DataKind::HeavyTailed},
                                  {1025, DataKind::Normal},
                                  {2500, DataKind::Sparse}};

TEST(Generator, ProgramsAgree) {
  const std::uint64_t first = number_from("CINCH_TEST_FIRST", 0);
  const std::uint64_t count =
      number_from("CINCH_TEST_PROGRAMS", programs_per_round() * (is_long_run() ? 20 : 1));
  for (std::uint64_t i = first; i < first + count; ++i) {
    const GeneratedProgram generated = generate_program(i);
    const TrialResult result = try_program(
        generated.name, generated.text, {.runners = {Runner::Levels}, .sizes = kSizes, .seed = i});
    EXPECT_TRUE(result.agrees()) << result.kind << ": " << result.text << "\n" << generated.text;
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
