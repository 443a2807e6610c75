// The same bits from CUDA text, run on the emulated GPU, and from CPU kernels: every instruction,
// at sizes around all edges.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "codegen/emit/cuda.h"
#include "codegen/passes/passes.h"
#include "tests/environment.h"
#include "tests/unit/codegen/emit/program_bits.h"
#include "tests/unit/codegen/kir/sample_programs.h"

namespace cinch::codegen {
namespace {

enum class Data { Normal, Zeros, Wild };

std::vector<std::uint8_t> floats(Data data) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(9973, 0.0f);
  for (float& x : values) {
    if (data == Data::Zeros) continue;
    x = normal(random);
    if (data == Data::Wild && random() % 7 == 0) x *= std::ldexp(1.0f, int(random() % 200) - 100);
    if (data == Data::Wild && random() % 50 == 0) x = -0.0f;
    if (data == Data::Wild && random() % 500 == 0) x = std::nanf("");
    if (data == Data::Wild && random() % 500 == 0) x = INFINITY;
  }
  std::vector<std::uint8_t> bytes(4 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<BitsCase> cases(const std::vector<std::int64_t>& lengths) {
  std::vector<BitsCase> out;
  const bool is_long = lengths.back() > 50000;  // threads are slow here
  for (Data data : {Data::Wild, Data::Zeros, Data::Normal}) {
    if (is_long && data != Data::Wild) continue;
    for (std::int64_t n : lengths) {
      BitsCase at;
      at.n = n;
      at.rows = n % 5 == 0 ? 5 : 1;
      at.cols = n / at.rows;
      at.params = {std::bit_cast<std::uint32_t>(0.5f)};
      at.input = floats(data);
      at.num_blocks = n < 100 ? 1 : 3;
      out.push_back(std::move(at));
    }
  }
  return out;
}

const std::vector<std::int64_t> kLengths = {0,   1,    2,    31,   32,   33,  127,
                                            129, 1023, 1024, 1025, 3000, 9001};

void agree(const kir::KernelProgram& program, const std::vector<std::int64_t>& lengths = kLengths) {
  const auto difference = compare_targets(program, rt::EntryKind::Encode, cases(lengths));
  ASSERT_TRUE(difference) << difference.error().message.substr(0, 3000);
  EXPECT_EQ(*difference, "") << program.info.name;
}

TEST(CudaBits, reductions_and_packed_bits) {
  agree(kir::sample_reduce());
}
TEST(CudaBits, kernels_that_share_a_function) {
  agree(kir::sample_twins());
}
TEST(CudaBits, compaction) {
  agree(kir::sample_compact());
}
TEST(CudaBits, short_rows) {
  agree(kir::sample_rows(512, 4));
}
TEST(CudaBits, rows_of_one_tile) {
  agree(kir::sample_rows(1024, 8));
}
TEST(CudaBits, rows_that_share_bytes) {
  agree(kir::sample_rows(5, 3), {1, 39, 41, 1024});
}
TEST(CudaBits, rows_of_a_few_tiles) {
  agree(kir::sample_rows(3000, 5));
}
TEST(CudaBits, rows_of_a_block) {
  agree(kir::sample_rows(100000, 6), {1, 1025, 100000, 250001});
}
TEST(CudaBits, rows_of_more_than_a_tile_of_tiles) {
  agree(kir::sample_rows(1200000, 2), {1048577});
}
TEST(CudaBits, float_scan) {
  agree(kir::sample_scan());
}
TEST(CudaBits, stored_partials) {
  agree(kir::sample_partials(), {0, 1, 2, 127, 128, 1023, 1024, 1025, 5000});
  if (!is_sample_run()) agree(kir::sample_partials(), {1024 * 1024 + 2100});
}
// As many partials as elements: results of a fold are as many as a tile has, and more.
TEST(CudaBits, folded_partials) {
  std::vector<std::int64_t> lengths = {0, 1, 2, 1023, 1024, 1025, 5000, 9001};
  if (!is_sample_run()) lengths.push_back(1048577);
  if (is_long_run()) lengths.insert(lengths.end(), {1048576, 1100000});
  std::vector<BitsCase> all = cases({lengths.begin(), lengths.begin() + 8});
  for (const BitsCase& at : cases(lengths)) {
    if (at.n > 50000) all.push_back(at);
  }
  for (BitsCase& at : all) at.num_fold_blocks = at.n % 2 == 0 ? 5 : 1;
  for (kir::KernelProgram program : {kir::sample_folds(), kir::sample_reduce()}) {
    mark_foldable(program);
    ASSERT_TRUE(cuda_launch(program, program.kernels[1]).is_foldable);
    const auto difference = compare_targets(program, rt::EntryKind::Encode, all);
    ASSERT_TRUE(difference) << difference.error().message.substr(0, 3000);
    EXPECT_EQ(*difference, "") << program.info.name;
  }
}

TEST(CudaBits, a_kernel_trusts_that_partials_are_folded) {
  std::vector<BitsCase> all = cases({5000});
  for (BitsCase& at : all) {
    at.num_fold_blocks = 1;
    at.is_fold_missing = true;
  }
  kir::KernelProgram program = kir::sample_folds();
  mark_foldable(program);
  const auto difference = compare_targets(program, rt::EntryKind::Encode, all);
  ASSERT_TRUE(difference) << difference.error().message.substr(0, 3000);
  EXPECT_NE(*difference, "");
}

TEST(CudaBits, draws_histogram_ordered_adds_and_sorts) {
  agree(kir::sample_odds());
}

TEST(CudaBits, every_stored_type) {
  for (DType dtype : {kF16, kBF16, kF64, kF8E4M3, kF8E5M2, kU8, kI16, kU32, kI64}) {
    agree(kir::sample_copy(dtype, kir::whole_element_bits(dtype)), {33, 1025});
  }
  agree(kir::sample_copy(kBool, 1), {1, 7, 8, 33, 1025});
  for (int bits : {2, 3, 4, 7, 9, 13, 24, 31, 33, 57, 63}) {
    if (is_sample_run() && bits != 3 && bits != 33) continue;
    const auto width = static_cast<std::uint8_t>(bits);
    if (is_long_run() || bits % 2 == 0 || bits > 31) {
      agree(kir::sample_copy(*make_uint(bits), width), {1, 33, 1025});
    }
    if (is_long_run() || bits % 2 != 0) agree(kir::sample_copy(*make_int(bits), width), {7, 1024});
  }
}

}  // namespace
}  // namespace cinch::codegen
