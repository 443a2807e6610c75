// Scalars and vectors of 4, 8 and 16 lanes, for plain x86-64, AVX2 and AVX-512, with and without
// the machine's rounding instructions: every function gives the same bits.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/unit/runtime/core/lane_functions.h"

namespace cinch::lane_tests {
namespace {

using Words = std::vector<std::uint64_t>;
constexpr std::size_t kNumInputs = 1 << 15;

// Bits of values at which results change.
const std::vector<std::uint64_t> kEdges32 = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x33800000, 0x34000000,
    0x3effffff, 0x3f000000, 0x3f000001, 0x3f3504f3, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fb504f3,
    0x3fc00000, 0x40000000, 0x40200000, 0x40490fdb, 0x42b17217, 0x42b17218, 0xc2cff1b5, 0x43e00000,
    0x43e80000, 0x47700000, 0x477fefff, 0x477ff000, 0x4aff0001, 0x4b000000, 0x4b7fffff, 0x4b800000,
    0x4effffff, 0x4f000000, 0x4f7fffff, 0x4f800000, 0x5effffff, 0x5f000000, 0x5f800000, 0x7f7fffff,
    0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7fa00000, 0xbf800000, 0xc0000000, 0xcf000000,
    0xdf000000, 0x38d1b717, 0x49800000, 0x49742400};
const std::vector<std::uint64_t> kEdges64 = {
    0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x000fffffffffffff,
    0x0010000000000000, 0x3ff0000000000000, 0x3ff0000000000001, 0x3fefffffffffffff,
    0x3fe0000000000000, 0x4000000000000000, 0x3fe6a09e667f3bcd, 0x3ff921fb54442d18,
    0x40862e42fefa39ef, 0x40862e42fefa39f0, 0xc0874910d52d3052, 0x4330000000000000,
    0x432fffffffffffff, 0x4340000000000000, 0x41dfffffffc00000, 0x41e0000000000000,
    0x41f0000000000000, 0x43e0000000000000, 0x43f0000000000000, 0x7fefffffffffffff,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001,
    0x36a0000000000000, 0x369fffffffffffff, 0x47efffffe0000000, 0x47efffffefffffff,
    0x47effffff0000000, 0x40effe0000000000, 0x40effdffffffffff, 0x3e60000000000000,
    0xbff0000000000000, 0xc000000000000000, 0xc3e0000000000000, 0x4130000000000000,
    0x4450000000000000, 0x7e37e43c8800759c};
const std::vector<std::uint64_t> kEdgesInt = {0,
                                              1,
                                              2,
                                              3,
                                              5,
                                              7,
                                              8,
                                              16,
                                              31,
                                              32,
                                              33,
                                              63,
                                              64,
                                              65,
                                              127,
                                              128,
                                              255,
                                              256,
                                              2047,
                                              2048,
                                              2049,
                                              32767,
                                              65535,
                                              65504,
                                              65519,
                                              65520,
                                              0xffffff,
                                              0x1000000,
                                              0x1000001,
                                              0x1000003,
                                              0x7fffffff,
                                              0x80000000,
                                              0x80000001,
                                              0xfffffffe,
                                              0xffffffff,
                                              0x100000000,
                                              0x20000000000000,
                                              0x20000000000001,
                                              0x20000000000003,
                                              0x7fffffffffffffff,
                                              0x8000000000000000,
                                              0x8000000000000001,
                                              0xfffffffffffffffe,
                                              0xffffffffffffffff,
                                              0xffffff0000000000,
                                              0xffffff8000000000,
                                              0xffffff8000000001,
                                              0x7fffffbfffffffff,
                                              0x7fffffc000000000};

const std::vector<std::uint64_t>& edges(InputKind kind) {
  switch (kind) {
    case InputKind::F32:
      return kEdges32;
    case InputKind::F64:
      return kEdges64;
    default:
      return kEdgesInt;
  }
}

// Edges against edges first, then random words, moderate floats and small numbers.
Words make_inputs(InputKind kind, int which) {
  std::mt19937_64 draw(1000 + 7 * static_cast<unsigned>(kind) + static_cast<unsigned>(which));
  const auto& edge = edges(kind);
  Words words(kNumInputs);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint64_t word = draw();
    if (i < edge.size() * edge.size()) {
      word = which == 0   ? edge[i / edge.size()]
             : which == 1 ? edge[i % edge.size()]
                          : edge[(i * 7) % edge.size()];
    } else if (kind == InputKind::F32 && i % 2 == 0) {
      word = (word & 0x807fffff) | ((100 + word / 0x100000000 % 60) << 23);
    } else if (kind == InputKind::F64 && i % 2 == 0) {
      word = (word & 0x800fffffffffffff) | ((990 + (word >> 52) % 70) << 52);
    } else if (i % 2 == 0) {
      word = draw() % 200 - 100;
    }
    words[i] = word;
  }
  return words;
}

struct Variant {
  const char* name;
  std::span<const LaneFunction> (*functions)(int lanes);
  bool is_supported;
};

class LangVectorsTest : public testing::TestWithParam<Variant> {};

TEST_P(LangVectorsTest, GiveTheBitsOfPortableScalars) {
  if (!GetParam().is_supported) GTEST_SKIP() << "this machine lacks " << GetParam().name;
  const auto reference = functions_portable(1);
  Words expected(kNumInputs), found(kNumInputs);
  for (std::size_t f = 0; f < reference.size(); ++f) {
    const Words a = make_inputs(reference[f].input, 0), b = make_inputs(reference[f].input, 1),
                c = make_inputs(reference[f].input, 2);
    reference[f].run(a.data(), b.data(), c.data(), expected.data(), kNumInputs);
    for (int lanes : {1, 4, 8, 16}) {
      const LaneFunction& function = GetParam().functions(lanes)[f];
      function.run(a.data(), b.data(), c.data(), found.data(), kNumInputs);
      for (std::size_t i = 0; i < kNumInputs; ++i) {
        ASSERT_EQ(found[i], expected[i]) << function.name << " with " << lanes << " lanes of "
                                         << std::hex << a[i] << ", " << b[i] << ", " << c[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LangVectorsTest,
    testing::Values(Variant{"portable", functions_portable, true},
                    Variant{"x86_64", functions_x86_64, true},
                    Variant{"x86_64_v3", functions_x86_64_v3,
                            static_cast<bool>(__builtin_cpu_supports("x86-64-v3"))},
                    Variant{"x86_64_v4", functions_x86_64_v4,
                            static_cast<bool>(__builtin_cpu_supports("x86-64-v4"))}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cinch::lane_tests
