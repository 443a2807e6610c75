// What stands in local arrays between the sections of a tile, and which matrices fold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/emit/cpu/reuse.h"
#include "codegen/kir/text/text.h"

namespace cinch::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two sections that load by index and work on what they find; the second one stores.
std::string two_sections(const std::string& first, const std::string& second,
                         const std::string& stored) {
  return "name=two\n"
         "buffers[0] {name=gradient, dtype=f32, storage_bits=32, role=gradient, role_index=0, "
         "num_elems=n, size_bytes=mul(4, n)}\n"
         "buffers[1] {name=room, dtype=f32, storage_bits=32, role=workspace, role_index=0, "
         "num_elems=n, size_bytes=mul(4, n)}\n"
         "buffers[2] {name=partial, dtype=f32, storage_bits=32, role=workspace, role_index=0, "
         "num_elems=n, size_bytes=mul(4, n)}\n"
         "kernel {\n symbol=two role=sweep group_kind=tile\n extent=n group_len=1024 "
         "num_groups=ceil_div(n, 1024)\n"
         " reads {buffer=0, version=5}\n writes {buffer=1, version=6}\n writes {buffer=2, "
         "version=7}\n combiner 0 = add\n"
         " kernel:\n    %0: u32 = constant {bits=0x3}\n group:\n    %1: i64 = group\n elements:\n" +
         first +
         "    %9: f32 = reduce %5 {combiner=0}\n group:\n    store_at %1, %9 @2\n elements:\n" +
         second + "    store_linear " + stored + " @1\n}\n";
}

const char* const kFirst =
    "    %2: u32 = element\n    %3: u32 = scalar.shr %2, %0 {dtype=u32}\n"
    "    %4: f32 = load_at %3 @0\n    %5: f32 = scalar.mul %4, %4\n";
const char* const kAgain =
    "    %10: u32 = element\n    %11: u32 = scalar.shr %10, %0 {dtype=u32}\n"
    "    %12: f32 = load_at %11 @0\n    %13: f32 = scalar.mul %12, %12\n";

std::string kept(const std::string& text) {
  auto program = kir::parse(text);
  EXPECT_TRUE(program) << program.error().message;
  if (!program) return {};
  keep_in_tiles(program->kernels[0], *program->info.exprs);
  return kir::print(*program);
}

TEST(KeepInTiles, WhatASectionBehindWouldComputeAnew) {
  const std::string text = kept(two_sections(kFirst, kAgain, "%13"));
  EXPECT_THAT(text, HasSubstr("locals[0] {type=f32}\n"));
  EXPECT_THAT(text, HasSubstr("%5: f32 = scalar.mul %4, %4\n    local_store %5\n"));
  EXPECT_THAT(
      text, HasSubstr(" elements:\n    %13: f32 = local_load\n    store_linear %13 @1  // room\n"));
}

TEST(KeepInTiles, NotWhatIsCheapOrDiffers) {
  const std::string cheap = two_sections(
      kFirst, "    %10: u32 = element\n    %11: f32 = convert %10 {from=u32, dtype=f32}\n", "%11");
  EXPECT_THAT(kept(cheap), Not(HasSubstr("local")));
  std::string other = kAgain;
  other.replace(other.find("shr"), 3, "shl");
  EXPECT_THAT(kept(two_sections(kFirst, other, "%13")), Not(HasSubstr("local")));
}

// Of a truth value's operands, those that only it needs are not kept.
TEST(KeepInTiles, ATruthValueAlone) {
  const std::string truth = "    %6: bool = scalar.lt %4, %5 {dtype=f32}\n";
  const std::string again =
      "    %14: bool = scalar.lt %12, %13 {dtype=f32}\n"
      "    %15: f32 = convert %14 {from=bool, dtype=f32}\n";
  const std::string text = kept(two_sections(kFirst + truth, kAgain + again, "%15"));
  EXPECT_THAT(text, HasSubstr("locals[0] {type=bool}\n"));
  EXPECT_THAT(text, Not(HasSubstr("] {type=f32}")));
  EXPECT_THAT(text, HasSubstr(" elements:\n    %14: bool = local_load\n"
                              "    %15: f32 = convert %14 {from=bool}\n"));
}

// What the kernel writes may differ the next time.
TEST(KeepInTiles, NotWhatIsReadFromWhereTheKernelWrites) {
  std::string first = kFirst, again = kAgain;
  first.replace(first.find("@0"), 2, "@1");
  again.replace(again.find("@0"), 2, "@1");
  EXPECT_THAT(kept(two_sections(first, again, "%13")), Not(HasSubstr("local")));
}

template <typename F>
using Rows = std::vector<std::vector<F>>;

// Twice the side: even rows mirror rows of the matrix, odd ones mirror new numbers with a sign.
template <typename F>
Rows<F> unfolded(const Rows<F>& matrix) {
  Rows<F> larger;
  for (const std::vector<F>& row : matrix) {
    std::vector<F> even = row, odd;
    for (std::size_t j = 0; j < row.size(); ++j) odd.push_back(row[j] + F(0.5) + F(larger.size()));
    for (std::size_t j = row.size(); j-- > 0;) {
      even.push_back(row[j]);
      odd.push_back(-odd[j]);
    }
    larger.push_back(even);
    larger.push_back(odd);
  }
  return larger;
}

template <typename F>
int folds_of(const Rows<F>& matrix) {
  std::vector<std::uint8_t> bytes;
  for (const std::vector<F>& row : matrix) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(row.data());
    bytes.insert(bytes.end(), begin, begin + row.size() * sizeof(F));
  }
  return matrix_folds(bytes, static_cast<std::int64_t>(matrix.size()));
}

TEST(MatrixFolds, AsOftenAsItsRowsMirrorThemselves) {
  const Rows<float> odd = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  EXPECT_EQ(folds_of(odd), 0);
  EXPECT_EQ(folds_of(unfolded(odd)), 1);
  EXPECT_EQ(folds_of(unfolded(unfolded(odd))), 2);
  EXPECT_EQ(folds_of(unfolded(unfolded(Rows<double>{{1, 2}, {3, 4}}))), 2);
  EXPECT_EQ(folds_of(unfolded(unfolded(unfolded(Rows<float>{{1}})))), 3);
}

// A sum of products with 0 and one with -0 differ.
TEST(MatrixFolds, NotWhereABitDiffers) {
  const Rows<float> matrix = unfolded(unfolded(Rows<float>{{0, 2}, {3, 4}}));
  Rows<float> inner = matrix, outer = matrix, zero = matrix;
  inner[2][1] = inner[2][6] = 9;  // still its own mirror image
  outer[1][7] = -outer[1][7];
  zero[0][7] = -zero[0][7];
  EXPECT_EQ(folds_of(inner), 1);
  EXPECT_EQ(folds_of(outer), 0);
  EXPECT_EQ(folds_of(zero), 0);
}

}  // namespace
}  // namespace cinch::codegen
