// Kernels that do the same with other buffers become one function, and no others do.
#include "codegen/emit/cpu/reuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cinch::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// As emit_cpu_kernel prints it: reads buffer `from`, writes `to`, by a size.
std::string kernel_text(const std::string& symbol, int from, int to, int size,
                        const std::string& body = "") {
  const auto fetch = [](int b) {
    const std::string number = std::to_string(b);
    return "  u8* const b" + number + " = (u8*)args->buffers[" + number + "];\n";
  };
  std::string text = R"(extern "C" __attribute__((visibility("default"))) void )" + symbol + "(\n" +
                     "    const KernelArgs* args, u64 group_begin, u64 group_end) {\n";
  text += fetch(std::min(from, to));
  if (from != to) text += fetch(std::max(from, to));
  text += "  Histogram<2048u> histogram_" + std::to_string(to) + ";\n";
  text += "  const i64 v1 = i64(args->sizes[" + std::to_string(size) + "]);\n";
  text += "  store_one<u32>(b" + std::to_string(to) + ", v1, load_one<u32>(b" +
          std::to_string(from) + ", v1));\n";
  return text + body + "}\n";
}

std::vector<CpuUnit> share(const std::vector<std::string>& texts) {
  kir::KernelProgram program;
  program.kernels.resize(texts.size());
  for (std::size_t k = 0; k < texts.size(); ++k)
    program.kernels[k].info.symbol = std::string(1, static_cast<char>('p' + k));
  return share_kernels(program, texts);
}

TEST(CpuUnits, KernelsOverOtherBuffersAreOneFunction) {
  // The second's buffers are fetched in the other order.
  const auto units =
      share({kernel_text("p", 1, 2, 3), kernel_text("q", 9, 4, 5), kernel_text("r", 1, 2, 3, "x")});
  ASSERT_EQ(units.size(), 2u);
  EXPECT_THAT(units[0].kernels, ElementsAre(0, 1));
  const std::string& text = units[0].text;
  EXPECT_THAT(text, HasSubstr("void shared_p(const KernelArgs* args, u64 group_begin, u64 "
                              "group_end, const u32* places) {\n"));
  // Places in the order of their mention: the histogram's buffer, the size, what is read.
  EXPECT_THAT(text, HasSubstr("u8* const b1 = (u8*)args->buffers[places[2]];"));
  EXPECT_THAT(text, HasSubstr("u8* const b2 = (u8*)args->buffers[places[0]];"));
  EXPECT_THAT(text, HasSubstr("args->sizes[places[1]]"));
  EXPECT_THAT(text, HasSubstr("void p(const KernelArgs* args, u64 group_begin, u64 group_end) {\n"
                              "  static constexpr u32 places[] = {2u, 3u, 1u, };"));
  EXPECT_THAT(text, HasSubstr("places[] = {4u, 5u, 9u, };"));
  EXPECT_EQ(units[1].text, kernel_text("r", 1, 2, 3, "x"));
}

TEST(CpuUnits, OneBufferForTwoIsAnotherFunction) {
  EXPECT_EQ(share({kernel_text("p", 1, 2, 3), kernel_text("q", 7, 7, 3)}).size(), 2u);
  EXPECT_EQ(share({kernel_text("p", 6, 6, 3), kernel_text("q", 7, 7, 3)}).size(), 1u);
}

TEST(CpuUnits, OtherConstantsAreAnotherFunction) {
  const auto units =
      share({kernel_text("p", 1, 2, 3, "f(8u);\n"), kernel_text("q", 4, 5, 6, "f(9u);\n"),
             kernel_text("r", 4, 5, 6, "f(args->draw, b1);\n"),
             kernel_text("s", 4, 1, 6, "f(args->draw, b1);\n")});
  EXPECT_EQ(units.size(), 4u);
  for (const CpuUnit& unit : units) EXPECT_THAT(unit.text, Not(HasSubstr("places")));
}

}  // namespace
}  // namespace cinch::codegen
