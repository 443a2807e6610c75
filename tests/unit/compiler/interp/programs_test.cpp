// Whole programs on the interpreter: sizes, states, checks, draws, orders, ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "compiler/interp/interp.h"
#include "compiler/ir/text/text.h"
#include "runtime/core/numbers/ordered_reduce.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::interp {
namespace {

using ir::FunctionKind;
using testing::HasSubstr;

ir::Program parsed(const std::string& text) {
  rt::Result<ir::Program> program = ir::parse(text);
  if (!program) throw std::runtime_error(program.error().message);
  return std::move(*program);
}

std::vector<float> ramp(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)) * 3);
  }
  return values;
}

constexpr std::size_t kEdgeSizes[] = {0, 1, 2, 31, 32, 33, 1023, 1024, 1025};

// Threshold with error kept in a state.
const char* const kThreshold = R"(name="threshold"
params[0] {name="tau", dtype=f32, default=1, range {low=0}}
counts[0] {name="m", bound=n}
states[0] {name="residual", type=[f32; n]}
wire { counts {} fields {name=index, type=[u32; m], ascending, index_limit=n} fields {name=value, type=[f32; m]} }
init { %0: f32 = const_scalar {value=0} %1: [f32; n] = fill %0 yield results output(%1) }
encode {
  %0: [f32; n] = gradient
  %1: [f32; n] = state {index=0}
  %2: [f32; n] = map.add %0, %1
  %3: [f32; n] = map.abs %2
  %4: f32 = param {index=0}
  %5: [bool; n] = map.ge %3, %4
  %6: [u32; m], %7: u32 = nonzero %5 {index=0}
  %8: [f32; m] = gather %2, %6
  %9: f32 = const_scalar {value=0}
  %10: [f32; m] = fill %9
  %11: [f32; n] = scatter %2, %6, %10
  yield
  results fields(%6, %8) counts(%7) states(%11)
}
decode {
  %0: [u32; m] = field {index=0}
  %1: [f32; m] = field {index=1}
  %2: f32 = const_scalar {value=0}
  %3: [f32; n] = fill %2
  %4: [f32; n] = scatter %3, %0, %1
  yield
  results output(%4)
}
)";

TEST(Programs, ThresholdKeepsSumOfPayloadAndState) {
  const ir::Program program = parsed(kThreshold);
  for (std::size_t n : kEdgeSizes) {
    const std::vector<float> g = ramp(n);
    Inputs inputs = inputs_for(g);
    const auto encoded = run(program, FunctionKind::Encode, inputs);
    ASSERT_TRUE(encoded.has_value()) << encoded.error().message;
    inputs.fields = encoded->fields;
    inputs.counts = encoded->counts;
    const auto decoded = run(program, FunctionKind::Decode, inputs);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    const std::vector<float> kept = to_floats(*decoded->output);
    const std::vector<float> left = to_floats(encoded->states[0]);
    ASSERT_EQ(kept.size(), n);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(kept[i] + left[i], g[i]);
      EXPECT_TRUE(std::fabs(left[i]) < 1);
      count += std::fabs(g[i]) >= 1;
    }
    EXPECT_EQ(encoded->counts[0], count);
    EXPECT_EQ(encoded->fields[0].size(), count);
  }
}

TEST(Programs, ParametersAreBound) {
  const ir::Program program = parsed(kThreshold);
  Inputs inputs = inputs_for(std::vector<float>{0.5f, 2, 3});
  inputs.params = {2.5};
  EXPECT_EQ(run(program, FunctionKind::Encode, inputs)->counts[0], 1);
  inputs.params = {1, 2};
  EXPECT_FALSE(run(program, FunctionKind::Encode, inputs).has_value());
}

TEST(Programs, NonFiniteGradientsLeaveStatesAlone) {
  const ir::Program program = parsed(kThreshold);
  for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Inputs inputs = inputs_for(std::vector<float>{1, bad, 3});
    inputs.states = {from_floats(std::vector<float>{4, 5, 6})};
    const auto encoded = run(program, FunctionKind::Encode, inputs);
    ASSERT_TRUE(encoded.has_value());
    EXPECT_TRUE(encoded->non_finite);
    EXPECT_EQ(encoded->states, inputs.states);
    EXPECT_TRUE(encoded->fields.empty());
    inputs.is_non_finite = true;
    const auto decoded = run(program, FunctionKind::Decode, inputs);
    ASSERT_TRUE(decoded.has_value());
    for (std::uint64_t x : decoded->output->bits) EXPECT_EQ(x, 0x7fc00000u);
  }
}

TEST(Programs, InputsAreChecked) {
  const ir::Program program = parsed(kThreshold);
  Inputs inputs = inputs_for(ramp(4));
  EXPECT_FALSE(run(program, FunctionKind::Finish, inputs).has_value());  // there is none
  EXPECT_FALSE(run(program, FunctionKind::Decode, inputs).has_value());  // fields are missing
  inputs.rows = 5;
  EXPECT_FALSE(run(program, FunctionKind::Encode, inputs).has_value());
  inputs.rows = 4;
  inputs.worker = 1;
  EXPECT_FALSE(run(program, FunctionKind::Encode, inputs).has_value());
}

// A finish whose body is `ops` on %0 (the sum), %1 (bool true), %2 (iota); %9 is the output.
ir::Program finish_of(const std::string& ops) {
  return parsed(R"(name="f"
has_finish
finish {
  %0: [f32; n] = gradient
  %1: bool = const_scalar {value=1}
  %2: [u32; n] = iota
)" + ops + "\n yield results output(%9) }");
}

std::string error_of(const std::string& ops, std::size_t n = 4) {
  const auto result = run(finish_of(ops), FunctionKind::Finish, inputs_for(ramp(n)));
  return result ? "none" : result.error().message;
}

TEST(Checks, NameTheirMessage) {
  const std::string rest = " %9: [f32; n] = map.neg %0";
  EXPECT_EQ(error_of("check %1 {text=\"a\"}" + rest), "none");
  EXPECT_EQ(error_of("%3: bool = map.bit_not %1 check %3 {text=\"sad\"}" + rest), "sad");
  EXPECT_THAT(error_of("check_index %2 {below=3, text=\"x[i]\"}" + rest),
              HasSubstr("x[i]: index 3 at 3 is not below 3"));
  EXPECT_EQ(error_of("check_index %2 {below=4, text=\"x[i]\"}" + rest), "none");
  EXPECT_THAT(
      error_of("%3: i32 = const_scalar {value=-1} check_index %3 {below=3, text=\"x\"}" + rest),
      HasSubstr("index -1"));
  EXPECT_THAT(error_of("%3: [u32; 2] = slice %2 {begin=1} %4: [u32; 4] = concat %3, %3 "
                       "check_unique %4 {cells=n, text=\"at\"}" +
                       rest),
              HasSubstr("at: index 1 repeats"));
  EXPECT_EQ(error_of("check_unique %2 {cells=n, text=\"at\"}" + rest), "none");
  EXPECT_EQ(error_of("check_host {holds=lt(n, 4), text=\"too long\"}" + rest), "too long");
  EXPECT_EQ(error_of("check_host {holds=lt(n, 5), text=\"too long\"}" + rest), "none");
}

TEST(Checks, BranchesNotTakenDoNotCount) {
  EXPECT_EQ(error_of("%3: bool = map.bit_not %1 %4: bool = if_else %3 () { check %3 {text=\"no\"} "
                     "yield %3 } () { yield %1 } %9: [f32; n] = map.neg %0"),
            "none");
}

TEST(Checks, UncheckedIndicesAreOurFault) {
  const auto result =
      run(finish_of("%3: [f32; 2] = slice %0 {begin=0} %9: [f32; n] = gather %3, %2"),
          FunctionKind::Finish, inputs_for(ramp(4)));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, rt::ErrorKind::Internal);
}

TEST(Orders, SumsFollowTheTiles) {
  const ir::Program program = finish_of(
      "%3: f32 = const_scalar {value=0} %4: f32 = reduce %0, %3 {axis=all, combiner=add} %9: [f32; "
      "n] = fill %4");
  for (std::size_t n : kEdgeSizes) {
    if (n == 0) continue;
    const std::vector<float> g = ramp(n);
    const auto sum = ordered_reduce<float>(
        n, [&](std::size_t i) { return std::optional<float>(g[i]); },
        [](float a, float b) { return a + b; });
    const auto found = run(program, FunctionKind::Finish, inputs_for(g));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(to_floats(*found->output)[0], 0.0f + *sum) << n;
  }
}

TEST(Orders, ScansFollowTheTiles) {
  const ir::Program program = finish_of(
      "%3: f32 = const_scalar {value=0} %9: [f32; n] = scan %0, %3 {axis=all, combiner=add}");
  for (std::size_t n : kEdgeSizes) {
    std::vector<float> g = ramp(n);
    const auto found = run(program, FunctionKind::Finish, inputs_for(g));
    ASSERT_TRUE(found.has_value());
    ordered_scan(g, [](float a, float b) { return a + b; });
    for (float& x : g) x = 0.0f + x;
    EXPECT_EQ(to_floats(*found->output), g) << n;
  }
}

// Draws.

std::vector<std::uint64_t> draws(const std::string& op, const DrawKey& key, std::size_t n = 40,
                                 std::uint32_t worker = 0) {
  const ir::Program program = finish_of(op + " %9: [f32; n] = convert %3");
  Inputs inputs = inputs_for(ramp(n));
  inputs.draw = key;
  inputs.world = 4;
  inputs.worker = worker;
  const auto result = run(program, FunctionKind::Finish, inputs);
  if (!result) throw std::runtime_error(result.error().message);
  return result->output->bits;
}

TEST(Draws, DependOnTheirKeyAndSiteAlone) {
  const std::string op = "%3: [f32; n] = random {site=1}";
  const DrawKey key{1, 2, 3, 4};
  const auto base = draws(op, key);
  EXPECT_EQ(draws(op, key), base);
  EXPECT_NE(draws(op, {9, 2, 3, 4}), base);
  EXPECT_NE(draws(op, {1, 9, 3, 4}), base);
  EXPECT_NE(draws(op, {1, 2, 9, 4}), base);
  EXPECT_NE(draws(op, {1, 2, 3, 9}), base);
  EXPECT_NE(draws(op, key, 40, 1), base);
  EXPECT_NE(draws("%3: [f32; n] = random {site=2}", key), base);
  const std::string shared = "%3: [f32; n] = random {site=1, shared}";
  EXPECT_EQ(draws(shared, key, 40, 3), draws(shared, key, 40, 0));
}

TEST(Draws, IterationsCountOntoTheSite) {
  const DrawKey key{5, 6, 7, 0};
  const std::string at_three = "%4: i64 = const_scalar {value=3} %3: [f32; n] = random %4 {site=1}";
  EXPECT_EQ(draws(at_three, key), draws("%3: [f32; n] = random {site=4}", key));
}

TEST(Draws, RandomIsInTheUnitIntervalAndSpreads) {
  double sum = 0;
  for (std::uint64_t x : draws("%3: [f32; n] = random {site=0}", {}, 2000)) {
    const float u = f32_of(x);
    EXPECT_TRUE(u >= 0 && u < 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 2000, 0.5, 0.03);
}

TEST(Draws, NormalHasItsMoments) {
  double sum = 0, squares = 0;
  for (std::uint64_t x : draws("%3: [f32; n] = normal {site=0}", {}, 4000)) {
    sum += f32_of(x);
    squares += f32_of(x) * f32_of(x);
  }
  EXPECT_NEAR(sum / 4000, 0, 0.06);
  EXPECT_NEAR(squares / 4000, 1, 0.08);
}

TEST(Draws, RandomBitsAreTheUpperBitsOfRandom) {
  const auto bits = draws(
      "%4: [u32; n] = random_bits {site=3} %5: u32 = const_scalar {value=8} "
      "%3: [u32; n] = map.shr %4, %5",
      {});
  const auto uniform = draws("%3: [f32; n] = random {site=3}", {});
  for (std::size_t i = 0; i < bits.size(); ++i) {
    EXPECT_EQ(f32_of(bits[i]) * 0x1p-24f, f32_of(uniform[i]));
  }
}

TEST(Draws, RandomIndexDoesNotRepeat) {
  for (std::size_t n : {1, 2, 33, 1025}) {
    const auto drawn = draws("%3: [u32; n] = random_index {below=n + 7, site=0}", {}, n);
    const std::set<std::uint64_t> distinct(drawn.begin(), drawn.end());
    EXPECT_EQ(distinct.size(), n);
    for (std::uint64_t x : drawn) EXPECT_LT(f32_of(x), static_cast<float>(n + 7));
  }
  EXPECT_THAT(error_of("%3: [u32; n] = random_index {below=3, site=0} %9: [f32; n] = convert %3"),
              HasSubstr("without repeats"));
}

TEST(Draws, StochasticRoundIsNextToXAndUnbiased) {
  const ir::Program program = finish_of("%9: [f32; n] = stochastic_round %0 {site=2}");
  std::vector<float> g(4000, 2.25f);
  g[0] = 7;
  g[1] = -0.5f;
  const auto result = run(program, FunctionKind::Finish, inputs_for(g));
  ASSERT_TRUE(result.has_value());
  const std::vector<float> rounded = to_floats(*result->output);
  EXPECT_EQ(rounded[0], 7);
  EXPECT_TRUE(rounded[1] == 0 || rounded[1] == -1);
  double ups = 0;
  for (std::size_t i = 2; i < rounded.size(); ++i) {
    EXPECT_TRUE(rounded[i] == 2 || rounded[i] == 3);
    ups += rounded[i] == 3;
  }
  EXPECT_NEAR(ups / 3998, 0.25, 0.03);
}

// Ranks.

ir::Program sync_of(const std::string& ops) {
  return parsed(
      "name=s\nhas_sync\nstates {name=last, type=[f32; n]}\ninit { %0: f32 = const_scalar "
      "{value=0} %1: [f32; n] = fill %0 yield results output(%1) }\nsync { %0: [f32; n] = "
      "gradient " +
      ops + " yield results output(%9) states(%9) }");
}

std::vector<std::vector<float>> synced(const std::string& ops,
                                       const std::vector<std::vector<float>>& gradients) {
  std::vector<Inputs> ranks;
  for (const auto& g : gradients) ranks.push_back(inputs_for(g));
  const auto result = run_ranks(sync_of(ops), FunctionKind::Sync, ranks);
  if (!result) throw std::runtime_error(result.error().message);
  std::vector<std::vector<float>> outputs;
  for (const Outputs& rank : *result) outputs.push_back(to_floats(*rank.output));
  return outputs;
}

using Rows = std::vector<std::vector<float>>;

TEST(Ranks, CollectivesMeetInRankOrder) {
  const Rows g = {{1, 2}, {3, 5}};
  EXPECT_EQ(synced("%9: [f32; n] = all_reduce %0 {combiner=add}", g), (Rows{{4, 7}, {4, 7}}));
  EXPECT_EQ(synced("%9: [f32; n] = all_reduce %0 {mean, combiner=add}", g),
            (Rows{{2, 3.5f}, {2, 3.5f}}));
  EXPECT_EQ(synced("%9: [f32; n] = all_reduce %0 {combiner=max}", g), (Rows{{3, 5}, {3, 5}}));
  EXPECT_EQ(synced("%9: [f32; n] = broadcast %0 {index=1}", g), (Rows{{3, 5}, {3, 5}}));
  const std::string gathered = "%1: [f32; world, n] = all_gather %0 ";
  EXPECT_EQ(synced(gathered + "%9: [f32; n] = reduce_scatter %1 {combiner=add}", g),
            (Rows{{2, 4}, {6, 10}}));
  EXPECT_EQ(synced(gathered + "%2: [f32; world, n] = all_to_all %1 %3: [f32; 1, n] = slice %2 "
                              "{begin=1} %9: [f32; n] = reshape %3",
                   g),
            (Rows{{1, 2}, {3, 5}}));
}

// Ranks 0 and 1, 2 and 3; then 0 and 2, 1 and 3.
TEST(Ranks, ExchangeInGroups) {
  const Rows g = {{1, 2}, {3, 5}, {7, 8}, {9, 4}};
  const auto swapped = [&](const std::string& stride) {
    return synced(
        "%1: [f32; 2, 1] = reshape %0 {proved} %2: [f32; 2, 1] = all_to_all %1 "
        "{group=2, stride=" +
            stride + "} %9: [f32; n] = reshape %2 {proved}",
        g);
  };
  EXPECT_EQ(swapped("1"), (Rows{{1, 3}, {2, 5}, {7, 9}, {8, 4}}));
  EXPECT_EQ(swapped("2"), (Rows{{1, 7}, {3, 9}, {2, 8}, {5, 4}}));
}

TEST(Ranks, NameOneRoot) {
  const Rows g = {{1, 2}, {3, 5}, {7, 8}};
  const auto from = [&](const std::string& root) {
    return "%1: u32 = host_size {size=" + root +
           "} %9: [f32; n] = broadcast_from %0, %1 {text=\"there\"}";
  };
  EXPECT_EQ(synced(from("world - 1"), g), (Rows{{7, 8}, {7, 8}, {7, 8}}));
  const auto error_of = [&](const std::string& root) {
    const std::vector<Inputs> ranks(3, inputs_for(std::vector<float>{1}));
    const auto result = run_ranks(sync_of(from(root)), FunctionKind::Sync, ranks);
    return result ? "" : result.error().message;
  };
  EXPECT_EQ(error_of("world"), "there: there is no rank 3 of 3");
  EXPECT_EQ(error_of("worker"), "there: rank 0 names rank 0, rank 1 names rank 1");
}

TEST(Ranks, SendToTheRanksThatTheyName) {
  const Rows g = {{1, 2}, {3, 5}, {7, 8}};
  const std::string to_right =
      "%1: u32 = host_size {size=mod(worker + 1, world)} "
      "%9: [f32; n] = send_receive %0, %1 {text=\"there\"}";
  EXPECT_EQ(synced(to_right, g), (Rows{{7, 8}, {1, 2}, {3, 5}}));
  const std::string to_itself =
      "%1: u32 = host_size {size=worker} %9: [f32; n] = send_receive %0, %1 {text=\"there\"}";
  EXPECT_EQ(synced(to_itself, g), g);
}

TEST(Ranks, TwoThatSendToTheSameOneAreAnErrorOfAll) {
  const auto program = sync_of(
      "%1: u32 = host_size {size=div(worker, 2)} %9: [f32; n] = send_receive %0, %1 "
      "{text=\"there\"}");
  const std::vector<Inputs> ranks(3, inputs_for(std::vector<float>{1}));
  const auto result = run_ranks(program, FunctionKind::Sync, ranks);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "there: ranks 0 and 1 both send to rank 0");
}

// Each rank sends as many elements as its number says; the result is filled up with zeros.
TEST(Ranks, SendAsMuchAsTheyCount) {
  const Rows g = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  const std::string length = "%1: u32 = host_size {size=worker} ";
  EXPECT_EQ(synced(length + "%2: [f32; world * n], %3: u32 = all_gather_counted %0, %1 "
                            "%9: [f32; n] = slice %2 {begin=0}",
                   g),
            (Rows{{4, 7, 8}, {4, 7, 8}, {4, 7, 8}}));
  EXPECT_EQ(
      synced(length + "%2: u32 = host_size {size=mod(worker + 1, world)} "
                      "%9: [f32; n], %4: u32 = send_receive_counted %0, %2, %1 {text=\"there\"}",
             g),
      (Rows{{7, 8, 0}, {0, 0, 0}, {4, 0, 0}}));
}

TEST(Ranks, OneRankAloneNeedsNoOthers) {
  const auto result = run(sync_of("%9: [f32; n] = all_reduce %0 {combiner=add}"),
                          FunctionKind::Sync, inputs_for(std::vector<float>{1, 2}));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(to_floats(*result->output), (std::vector<float>{1, 2}));
}

TEST(Ranks, OneNonFiniteGradientStopsAllStates) {
  std::vector<Inputs> ranks = {inputs_for(std::vector<float>{1, 2}),
                               inputs_for(std::vector<float>{1, std::nanf("")})};
  const auto result =
      run_ranks(sync_of("%9: [f32; n] = all_reduce %0 {combiner=add}"), FunctionKind::Sync, ranks);
  ASSERT_TRUE(result.has_value());
  for (const Outputs& rank : *result) {
    EXPECT_TRUE(rank.non_finite);
    EXPECT_EQ(to_floats(rank.states[0]), (std::vector<float>{0, 0}));
  }
}

TEST(Ranks, AFailingRankEndsTheOthers) {
  const auto program = sync_of(
      "%1: u32 = const_scalar {value=0} %2: f32 = gather %0, %1 %3: f32 = const_scalar {value=2} "
      "%4: bool = map.lt %2, %3 check %4 {text=\"first is large\"} %9: [f32; n] = all_reduce %0 "
      "{combiner=add}");
  const auto result =
      run_ranks(program, FunctionKind::Sync,
                {inputs_for(std::vector<float>{1}), inputs_for(std::vector<float>{3})});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "first is large");
}

}  // namespace
}  // namespace cinch::interp
