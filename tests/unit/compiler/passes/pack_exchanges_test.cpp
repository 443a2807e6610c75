// Exchanges of packed elements: the same elements as unpacked ones, at every width, number of ranks
// and size, in as many bytes as the bits of each rank's part take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/interp/interp.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {
namespace {

using testing::HasSubstr;
using testing::Not;

// A sync on %0 ([f32; n]); `ops` gives %9, any array of f32.
ir::Program exchange_of(const std::string& ops) {
  auto program = ir::parse("name=s\nhas_sync\nsync {\n%0: [f32; n] = gradient\n" + ops +
                           "\nyield\nresults output(%9)\n}\n");
  if (!program) throw std::runtime_error(program.error().message);
  return std::move(*program);
}

std::string exchanged(ir::Program& program) {
  PassContext context;
  pack_exchanges(program, context);
  ir::verify(program, "pack_exchanges");
  return ir::print(program, *program.find(ir::FunctionKind::Sync));
}

std::string exchanged_text(const std::string& ops) {
  ir::Program program = exchange_of(ops);
  return exchanged(program);
}

interp::Inputs exchange_inputs(std::size_t n, std::uint32_t rank) {
  std::vector<float> gradient(n);
  for (std::size_t i = 0; i < n; ++i) {
    gradient[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + 3 * rank) * 70);
  }
  return interp::inputs_for(gradient);
}

void expect_same_exchange(const std::string& ops) {
  const ir::Program plain = exchange_of(ops);
  ir::Program changed = plain;
  ASSERT_THAT(exchanged(changed), HasSubstr("unpack"));
  for (const std::uint32_t world : {1U, 2U, 3U, 5U}) {
    for (const std::size_t n : {0U, 1U, 7U, 8U, 9U, 16U, 45U}) {
      std::vector<interp::Inputs> ranks;
      for (std::uint32_t rank = 0; rank < world; ++rank) ranks.push_back(exchange_inputs(n, rank));
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

// Elements of a type, negative ones too.
std::string narrow_elements(const std::string& type) {
  if (type != "bool") return "%1: [" + type + "; n] = convert %0 ";
  return "%8: f32 = const_scalar {value=0} %1: [bool; n] = map.lt %0, %8 ";
}

// A row of a matrix: all ranks together look at all rows.
std::string look_at(const std::string& matrix) {
  return " %20: u32 = host_size {size=world - 1 - worker} %9: [f32; n] = gather " + matrix +
         ", %20";
}

class Exchanges : public testing::TestWithParam<const char*> {};

TEST_P(Exchanges, GatherTheSame) {
  const std::string type = GetParam();
  expect_same_exchange(narrow_elements(type) + "%2: [" + type + "; world, n] = all_gather %1 " +
                       "%3: [f32; world, n] = convert %2" + look_at("%3"));
}

// Rank w gets row w of each rank: all rows differ, for each is another rank's gradient.
TEST_P(Exchanges, SwapTheSame) {
  const std::string type = GetParam(), matrix = ": [" + type + "; world, n] = ";
  expect_same_exchange("%7: [f32; world, n] = all_gather %0 %8: f32 = const_scalar {value=0} %2" +
                       matrix + (type == "bool" ? "map.lt %7, %8" : "convert %7") + " %3" + matrix +
                       "all_to_all %2 %4: [f32; world, n] = convert %3" + look_at("%4"));
}

// Rank 0's to all, and each rank's to its counterpart from the other end.
TEST_P(Exchanges, SendTheSame) {
  const std::string type = GetParam(), array = ": [" + type + "; n] = ";
  expect_same_exchange(
      narrow_elements(type) + "%2" + array +
      "broadcast %1 {index=0} %3: [f32; n] = convert %2 "
      "%4: u32 = host_size {size=world - 1 - worker} %5" +
      array +
      "send_receive %1, %4 {text=\"there\"} %6: [f32; n] = convert %5 %7: f32 = "
      "const_scalar {value=200} %10: [f32; n] = map.mul %3, %7 %9: [f32; n] = map.add %10, "
      "%6");
}

INSTANTIATE_TEST_SUITE_P(Types, Exchanges,
                         testing::Values("bool", "u1", "i2", "u2", "i3", "u3", "i4", "u4", "u5",
                                         "i6", "u7", "i7"));

std::string gathered_text(const std::string& type, const std::string& size) {
  return exchanged_text("%1: [f32; " + size + "] = slice %0 {begin=0} %2: [" + type + "; " + size +
                        "] = convert %1 %3: [" + type + "; world, " + size +
                        "] = all_gather %2 %4: u32 = const_scalar {value=0} %5: [" + type + "; " +
                        size + "] = gather %3, %4 %6: " + type +
                        " = gather %5, %4 %7: f32 = " + "convert %6 %9: [f32; n] = fill %7");
}

TEST(PackExchanges, TakesAsManyBytesAsBits) {
  EXPECT_THAT(gathered_text("u1", "1000"), HasSubstr("[u8; world, 125] = all_gather"));
  EXPECT_THAT(gathered_text("i3", "1000"), HasSubstr("[u8; world, 375] = all_gather"));
  EXPECT_THAT(gathered_text("u4", "1000"), HasSubstr("[u8; world, 500] = all_gather"));
  EXPECT_THAT(gathered_text("i6", "1000"), HasSubstr("[u8; world, 750] = all_gather"));
}

// Whole bytes, and what takes no fewer bytes.
TEST(PackExchanges, LeavesWhatIsNotSmaller) {
  EXPECT_THAT(gathered_text("u8", "8"), Not(HasSubstr("unpack")));
  EXPECT_THAT(gathered_text("u1", "1"), Not(HasSubstr("unpack")));
  EXPECT_THAT(gathered_text("u7", "7"), Not(HasSubstr("unpack")));
  EXPECT_THAT(gathered_text("u7", "8"), HasSubstr("unpack"));
}

}  // namespace
}  // namespace cinch::passes
