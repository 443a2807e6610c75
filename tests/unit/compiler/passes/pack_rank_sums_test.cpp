// Sums over ranks in packed words: the same numbers as unpacked ones, at every number of ranks and
// size, in as few bits as all ranks' sum needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "compiler/interp/interp.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {
namespace {

using testing::HasSubstr;
using testing::Not;

// A sync on %0 ([f32; n]); `ops` gives %9, [f32; n].
ir::Program sync_of(const std::string& ops) {
  auto program = ir::parse(
      "name=s\nhas_sync\ntable 0: [i8; 3] = (-3, 5, 4)\nsync {\n%0: [f32; n] = "
      "gradient\n" +
      ops + "\nyield\nresults output(%9)\n}\n");
  if (!program) throw std::runtime_error(program.error().message);
  return std::move(*program);
}

std::string packed(ir::Program& program) {
  PassContext context;
  pack_rank_sums(program, context);
  ir::verify(program, "pack_rank_sums");
  return ir::print(program, *program.find(ir::FunctionKind::Sync));
}

std::string packed_text(const std::string& ops) {
  ir::Program program = sync_of(ops);
  return packed(program);
}

interp::Inputs inputs_of(std::size_t n, std::uint32_t rank) {
  std::vector<float> gradient(n);
  for (std::size_t i = 0; i < n; ++i) {
    // All at an end of every type for some elements; else all between.
    const double wave = std::sin(1.7 * static_cast<double>(i) + rank) * 300;
    gradient[i] = i % 3 == 0 ? (i % 2 == 0 ? 1e9f : -1e9f) : static_cast<float>(wave);
  }
  return interp::inputs_for(gradient);
}

void expect_same_sums(const std::string& ops) {
  const ir::Program plain = sync_of(ops);
  ir::Program changed = plain;
  ASSERT_THAT(packed(changed), HasSubstr("u64"));
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 5U, 8U, 9U, 33U}) {
    for (const std::size_t n : {1U, 2U, 7U, 32U, 65U, 130U}) {
      std::vector<interp::Inputs> ranks;
      for (std::uint32_t rank = 0; rank < world; ++rank) ranks.push_back(inputs_of(n, rank));
      const auto expected = interp::run_ranks(plain, ir::FunctionKind::Sync, ranks);
      const auto found = interp::run_ranks(changed, ir::FunctionKind::Sync, ranks);
      ASSERT_TRUE(expected.has_value()) << expected.error().message;
      ASSERT_TRUE(found.has_value()) << found.error().message;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        EXPECT_EQ((*found)[rank].output, (*expected)[rank].output) << world << " ranks, " << n;
      }
    }
  }
}

class Sums : public testing::TestWithParam<const char*> {};
TEST_P(Sums, AreTheSame) {
  const std::string type = GetParam();
  const std::string arithmetic = type.size() > 3 ? "i64" : type[0] == 'i' ? "i32" : "u32";
  expect_same_sums("%1: [" + type + "; n] = convert %0 %2: [" + arithmetic +
                   "; n] = convert %1 %3: [" + arithmetic +
                   "; n] = all_reduce %2 {combiner=add} %9: [f32; n] = convert %3");
}
INSTANTIATE_TEST_SUITE_P(Types, Sums,
                         testing::Values("u1", "i2", "u2", "i3", "u5", "i7", "u8", "i8", "u13",
                                         "i16", "u16"));

TEST(PackRankSums, TakesRangesOfValues) {
  // -1, 0 and 1: of 21 elements two ranks make one word, of 16 four.
  const std::string signs =
      "%1: [f32; n] = map.sign %0 %2: [i32; n] = convert %1 %3: [i32; n] = all_reduce %2 "
      "{combiner=add} %9: [f32; n] = convert %3";
  expect_same_sums(signs);
  EXPECT_THAT(packed_text(signs), HasSubstr("21"));
  expect_same_sums(
      "%1: f32 = const_scalar {value=-6} %2: f32 = const_scalar {value=9} %3: [f32; n] = map.clamp "
      "%0, %1, %2 %4: [i64; n] = convert %3 %5: [i64; n] = all_reduce %4 {combiner=add} %9: [f32; "
      "n] = convert %5");
}

TEST(PackRankSums, KeepsShapes) {
  expect_same_sums(
      "%1: [i4; n] = convert %0 %2: [i32; n] = convert %1 %3: [i32; ceil_div(n, 3), 3] = chunk %2 "
      "%4: [i32; ceil_div(n, 3), 3] = all_reduce %3 {combiner=add} %5: [i32; n] = unchunk %4 %9: "
      "[f32; n] = convert %5");
}

// Row w is what rank w gave: each rank adds up one of them.
TEST(PackRankSums, PacksRowsThatAreScattered) {
  expect_same_sums(
      "%1: [i4; n] = convert %0 %2: [i32; n] = convert %1 %3: [i32; world, n] = all_gather %2 "
      "%4: [i32; n] = reduce_scatter %3 {combiner=add} %9: [f32; n] = convert %4");
  const std::string text = packed_text(
      "%1: [i4; n] = convert %0 %2: [i32; n] = convert %1 %3: [i32; world, n] = all_gather %2 "
      "%4: [i32; n] = reduce_scatter %3 {combiner=add} %9: [f32; n] = convert %4");
  EXPECT_THAT(text, HasSubstr("[u64; world, ceil_div(n, "));
}

// Not packed: values of any size, single numbers, and floats.
TEST(PackRankSums, LeavesWhatIsNotSmaller) {
  const std::string any =
      "%2: [i32; n] = convert %0 %3: [i32; n] = all_reduce %2 {combiner=add} %9: [f32; n] = "
      "convert "
      "%3";
  EXPECT_THAT(packed_text(any), Not(HasSubstr("u64")));
  EXPECT_THAT(packed_text("%9: [f32; n] = all_reduce %0 {combiner=add}"), Not(HasSubstr("u64")));
  const std::string single =
      "%1: i32 = const_scalar {value=3} %2: i32 = all_reduce %1 {combiner=add} %3: f32 = convert "
      "%2 "
      "%9: [f32; n] = fill %3";
  EXPECT_THAT(packed_text(single), Not(HasSubstr("u64")));
  const std::string two =
      "%1: [i8; 3] = const_array {index=0} %2: [i32; 3] = convert %1 %4: [i32; 2] = slice %2 "
      "{begin=0} %3: [i32; 2] = all_reduce %4 {combiner=add} %5: u32 = const_scalar {value=1} %6: "
      "i32 = gather %3, %5 %7: f32 = convert %6 %9: [f32; n] = fill %7";
  EXPECT_THAT(packed_text(two), Not(HasSubstr("u64")));
}

TEST(PackRankSums, LeastAndGreatestTravelInEightBits) {
  for (const std::string how : {"min", "max"}) {
    const std::string text = packed_text(
        "%1: [i5; n] = convert %0 %2: [i32; n] = convert %1 %3: [i32; n] = all_reduce %2 "
        "{combiner=" +
        how + "} %9: [f32; n] = convert %3");
    EXPECT_THAT(text, HasSubstr("[i8; n] = all_reduce"));
  }
}

// A field holds the sum whatever the number of ranks is: the logarithm must never be too small.
TEST(PackRankSums, FieldsAreWideEnough) {
  HostExprPool exprs;
  const HostExprId sums = exprs.add(exprs.world(), exprs.const_int(1));
  const HostExprId log = exprs.make(HostOp::Log2, exprs.cast(sums, HostType::F64));
  const HostExprId bits = exprs.cast(exprs.make(HostOp::Ceil, log), HostType::Int);
  for (int power = 1; power < 48; ++power) {
    for (const std::int64_t near : {-2, -1, 0, 1}) {
      HostEnv env;
      env.world = (std::int64_t{1} << power) + near;
      if (env.world < 1) continue;
      const auto found = exprs.eval_int(bits, env);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(*found, std::bit_width(static_cast<std::uint64_t>(env.world))) << env.world;
    }
  }
}

}  // namespace
}  // namespace cinch::passes
