// The results of every op on small cases, computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/interp/interp.h"
#include "compiler/ir/text/text.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::interp {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Tables and leaves that the cases below share; %90 is what a case gives.
constexpr const char* kHead = R"(name="p"
counts[0] {name="m", bound=6}
counts[1] {name="l", bound=2}
table 0: [f32; 6] = (3, -1, nan, 7, -0, 7)
table 1: [f32; 2, 3] = (1, 2, 3, 4, 5, 6)
table 2: [u32; 3] = (5, 0, 3)
table 3: [bool; 6] = (1, 0, 0, 1, 0, 1)
table 4: [u8; 2] = (141, 1)
table 5: [f32; 1, 4] = (1, 2, 3, 4)
table 6: [f32; 3, 2] = (3, 1, 4, 1, 0, 1)
table 7: [u32; 4] = (2, 0, 2, 9)
table 8: [u32; 2, 2] = (2, 0, 1, 1)
table 9: [i8; 3] = (-3, 2, -128)
init {
  %0.x: [f32; 6] = const_array {index=0}
  %1.matrix: [f32; 2, 3] = const_array {index=1}
  %2.picks: [u32; 3] = const_array {index=2}
  %3.mask: [bool; 6] = const_array {index=3}
  %4.bytes: [u8; 2] = const_array {index=4}
  %5.row: [f32; 1, 4] = const_array {index=5}
  %6.tall: [f32; 3, 2] = const_array {index=6}
  %7.bins: [u32; 4] = const_array {index=7}
  %8.along: [u32; 2, 2] = const_array {index=8}
  %9.zero: f32 = const_scalar {value=0}
  %10.two: f32 = const_scalar {value=2}
  %11.no: bool = const_scalar {value=0}
  %12.one: u32 = const_scalar {value=1}
  %13.nothing: u32 = const_scalar {value=0}
  %14.bytes: [i8; 3] = const_array {index=9}
)";

double as_double(DType dtype, std::uint64_t element) {
  return f64_of(convert_element(dtype, kF64, element));
}

std::vector<double> values_of(const std::string& ops) {
  const auto program = ir::parse(kHead + ops + "\n  yield\n  results output(%90)\n}\n");
  if (!program) throw std::runtime_error(program.error().message);
  const auto result = evaluate_constant(*program, program->state_inits[0]);
  if (!result) throw std::runtime_error(result.error().message);
  std::vector<double> values;
  for (std::uint64_t x : result->bits) values.push_back(as_double(result->dtype, x));
  return values;
}

struct Case {
  const char* name;
  const char* ops;
  std::vector<double> expected;
};

class Ops : public testing::TestWithParam<Case> {};
TEST_P(Ops, GiveWhatTheySay) {
  const std::vector<double> found = values_of(GetParam().ops);
  ASSERT_EQ(found.size(), GetParam().expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = GetParam().expected[i];
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found[i])) << i;
    } else {
      EXPECT_EQ(found[i], expected) << i;
      EXPECT_EQ(std::signbit(found[i]), std::signbit(expected)) << i;
    }
  }
}
std::string name_of(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    Elements, Ops,
    testing::Values(
        Case{"iota", "%90: [u32; 3] = iota", {0, 1, 2}},
        Case{"fill", "%90: [f32; 3] = fill %10", {2, 2, 2}},
        Case{"fill_rows",
             "%80: [f32; 2, 1] = reduce %1, %9 {axis=1, combiner=add} %90: [f32; 2, 2] = fill %80",
             {6, 6, 15, 15}},
        Case{"map_scalar", "%90: [f32; 6] = map.mul %0, %10", {6, -2, kNan, 14, -0.0, 14}},
        Case{"map_column",
             "%80: [f32; 2, 1] = reduce %1, %9 {axis=1, combiner=max} %90: [f32; 2, 3] = map.sub "
             "%1, %80",
             {-2, -1, 0, -2, -1, 0}},
        Case{"map_select", "%90: [f32; 6] = map.select %3, %0, %9", {3, 0, 0, 7, 0, 7}},
        Case{"map_fma", "%90: [f32; 1, 4] = map.fma %5, %5, %10", {3, 6, 11, 18}},
        Case{"map_compare", "%90: [bool; 6] = map.ge %0, %9", {1, 0, 0, 1, 1, 1}},
        Case{"map_wraps", "%90: [i8; 3] = map.add %14, %14", {-6, 4, 0}},
        Case{"map_abs_wraps", "%90: [i8; 3] = map.abs %14", {3, 2, -128}},
        Case{"convert_truncates", "%90: [i4; 6] = convert %0", {3, -1, 0, 7, 0, 7}},
        Case{"convert_saturates",
             "%80: [f32; 1, 4] = map.mul %5, %10 %90: [u2; 1, 4] = convert %80",
             {2, 3, 3, 3}},
        Case{"convert_int_saturates", "%90: [u4; 3] = convert %14", {0, 2, 0}},
        Case{"convert_narrow", "%90: [f8e4m3; 6] = convert %0", {3, -1, kNan, 7, -0.0, 7}},
        Case{"bitcast",
             "%90: [u32; 1, 4] = bitcast %5",
             {0x3f800000, 0x40000000, 0x40400000, 0x40800000}},
        Case{"bitcast_nan",
             "%80: [u32; 6] = bitcast %0 %90: [u32; 1] = slice %80 {begin=2}",
             {0x7fc00000}},
        Case{"host_size", "%90: f32 = host_size {size=3 * 4}", {12}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Access, Ops,
    testing::Values(
        Case{"gather", "%90: [f32; 3] = gather %0, %2", {7, 3, 7}},
        Case{"gather_scalar", "%90: f32 = gather %0, %12", {-1}},
        Case{"gather_rows", "%90: [f32; 3] = gather %1, %12", {4, 5, 6}},
        Case{"gather_matrix", "%90: [f32; 2, 2] = gather %0, %8", {kNan, 3, -1, -1}},
        Case{"gather_along_rows", "%90: [f32; 2, 2] = gather_along %1, %8 {axis=1}", {3, 1, 5, 5}},
        Case{"gather_along_columns",
             "%90: [f32; 2, 2] = gather_along %6, %8 {axis=0}",
             {0, 1, 4, 1}},
        Case{"slice", "%90: [f32; 2] = slice %0 {begin=3}", {7, -0.0}},
        Case{"slice_rows", "%90: [f32; 1, 3] = slice %1 {begin=1}", {4, 5, 6}},
        Case{"concat", "%90: [u32; 7] = concat %2, %7", {5, 0, 3, 2, 0, 2, 9}},
        Case{"concat_columns",
             "%80: [f32; 2, 1] = reduce %1, %9 {axis=1, combiner=add} %90: [f32; 2, 4] = concat "
             "%80, %1 {axis=1}",
             {6, 1, 2, 3, 15, 4, 5, 6}},
        Case{"reshape", "%90: [f32; 3, 2] = reshape %1", {1, 2, 3, 4, 5, 6}},
        Case{"transpose", "%90: [f32; 3, 2] = transpose %1", {1, 4, 2, 5, 3, 6}},
        Case{"chunk", "%90: [u32; 2, 2] = chunk %2", {5, 0, 3, 0}},
        Case{"unchunk", "%90: [f32; 4] = unchunk %1", {1, 2, 3, 4}},
        Case{"unpack", "%90: [u3; 5] = unpack %4 {width=3}", {5, 1, 6, 0, 0}},
        Case{"pack",
             "%80: [u3; 5] = unpack %4 {width=3} %90: [u8; 2] = pack %80 {width=3}",
             {141, 1}},
        Case{"pack_signed", "%90: [u8; 2] = pack %14 {width=4}", {0x2d, 0}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Reductions, Ops,
    testing::Values(
        Case{"sum_of_rows", "%90: [f32; 2, 1] = reduce %1, %9 {axis=1, combiner=add}", {6, 15}},
        Case{
            "sum_of_columns", "%90: [f32; 1, 3] = reduce %1, %9 {axis=0, combiner=add}", {5, 7, 9}},
        Case{"masked_sum", "%90: f32 = reduce %0, %9, %3 {axis=all, combiner=add}", {17}},
        Case{"max_ignores_nan", "%90: f32 = reduce %0, %9 {axis=all, combiner=max}", {7}},
        Case{"init_joins_once", "%90: f32 = reduce %1, %10 {axis=all, combiner=add}", {23}},
        Case{"all_masked_gives_init",
             "%80: [bool; 6] = fill %11 %90: f32 = reduce %0, %10, %80 {axis=all, combiner=add}",
             {2}},
        // Columns 1 and 5 join first, then 0 with the NaN of 2, so the tie goes to 5.
        Case{"region_in_the_order_of_a_tile",
             "%80: [u32; 6] = iota %81: f32, %90: u32 = reduce %0, %80, %9, %13 {axis=all, "
             "combiner=region} (%20: f32, %21: u32, %22: f32, %23: u32) { %24: bool = map.ge %20, "
             "%22 %25: f32 = map.select %24, %20, %22 %26: u32 = map.select %24, %21, %23 yield "
             "%25, %26 }",
             {5}},
        Case{"scan", "%90: [f32; 1, 4] = scan %5, %10 {axis=1, combiner=add}", {3, 5, 8, 12}},
        Case{"scan_exclusive",
             "%90: [f32; 1, 4] = scan %5, %10 {axis=1, exclusive, combiner=add}",
             {2, 3, 5, 8}},
        Case{"scan_columns",
             "%90: [f32; 3, 2] = scan %6, %9 {axis=0, combiner=add}",
             {3, 1, 7, 2, 7, 3}},
        Case{"scan_matrix_as_vector",
             "%90: [f32; 2, 3] = scan %1, %9 {axis=all, combiner=add}",
             {1, 3, 6, 10, 15, 21}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Selection, Ops,
    testing::Values(
        Case{"nonzero", "%90: [u32; m], %81: u32 = nonzero %3 {index=0}", {0, 3, 5}},
        Case{"nonzero_count", "%81: [u32; m], %90: u32 = nonzero %3 {index=0}", {3}},
        Case{"nonzero_limit", "%90: [u32; l], %81: u32 = nonzero %3 {index=1, limit=2}", {0, 3}},
        Case{"count_value",
             "%80: [u32; m], %81: u32 = nonzero %3 {index=0} %90: u32 = count_value {index=0}",
             {3}},
        Case{"fill_by_count",
             "%80: [u32; m], %81: u32 = nonzero %3 {index=0} %90: [f32; m] = fill %10",
             {2, 2, 2}},
        Case{"top_k_nan_first_ties_low", "%90: [u32; 2] = top_k %0 {size=2, axis=all}", {2, 3}},
        Case{"top_k_rows", "%90: [u32; 2, 1] = top_k %1 {size=1, axis=1}", {2, 2}},
        Case{"top_k_zeros_tie",
             "%80: [f32; 6] = map.mul %0, %9 %81: [f32; 2] = slice %80 {begin=0} %90: [u32; 1] = "
             "top_k %81 {size=1, axis=all}",
             {0}},
        Case{"top_k_signed", "%90: [u32; 2] = top_k %14 {size=2, axis=all}", {0, 1}},
        Case{"kth_largest", "%90: f32 = kth_largest %0 {size=4, axis=all}", {3}},
        Case{"kth_largest_nan", "%90: f32 = kth_largest %0 {size=1, axis=all}", {kNan}},
        Case{"kth_largest_zero_is_positive", "%90: f32 = kth_largest %0 {size=5, axis=all}", {0.0}},
        Case{"kth_largest_none", "%90: f32 = kth_largest %0 {size=0, axis=all}", {kInf}},
        Case{"kth_largest_rows", "%90: [f32; 2, 1] = kth_largest %1 {size=2, axis=1}", {2, 5}},
        Case{"argsort", "%90: [u32; 6] = argsort %0 {axis=all}", {1, 4, 0, 3, 5, 2}},
        Case{"argsort_descending",
             "%90: [u32; 6] = argsort %0 {axis=all, descending}",
             {3, 5, 0, 4, 1, 2}},
        Case{"argsort_columns", "%90: [u32; 3, 2] = argsort %6 {axis=0}", {2, 0, 0, 1, 1, 2}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Stores, Ops,
    testing::Values(
        Case{"scatter",
             "%80: [f32; 3] = fill %10 %90: [f32; 6] = scatter %0, %2, %80",
             {2, -1, kNan, 2, -0.0, 2}},
        Case{"scatter_row",
             "%80: [f32; 3] = fill %10 %90: [f32; 2, 3] = scatter %1, %12, %80",
             {1, 2, 3, 2, 2, 2}},
        Case{"scatter_add",
             "%80: [u32; 3] = slice %7 {begin=0} %81: [f32; 3] = slice %0 {begin=3} %90: [f32; 3] "
             "= scatter_add %80, %81",
             {0, 0, 14}},
        Case{"scatter_min",
             "%80: [u32; 3] = slice %7 {begin=0} %81: [f32; 3] = slice %0 {begin=3} %90: [f32; 3] "
             "= scatter_reduce.min %80, %81",
             {-0.0, kInf, 7}},
        Case{"scatter_max",
             "%80: [u32; 3] = slice %7 {begin=0} %81: [f32; 3] = slice %0 {begin=3} %90: [f32; 3] "
             "= scatter_reduce.max %80, %81",
             {-0.0, -kInf, 7}},
        Case{"scatter_add_from_plus_zero",
             "%80: [u32; 1] = slice %7 {begin=1} %81: [f32; 1] = slice %0 {begin=4} %90: [f32; 1] "
             "= scatter_add %80, %81",
             {0.0}},
        Case{"histogram", "%90: [u32; 3] = histogram %7", {1, 0, 2}},
        Case{"histogram_masked",
             "%80: [bool; 4] = slice %3 {begin=0} %90: [u32; 3] = histogram %7, %80",
             {0, 0, 1}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Matrix, Ops,
    testing::Values(
        Case{"matmul", "%90: [f32; 2, 2] = matmul %1, %6", {11, 6, 32, 15}},
        Case{"hadamard", "%90: [f32; 1, 4] = hadamard %5", {5, -1, -2, 0}},
        Case{"orthonormalize",
             "%80: [f32; 1, 2] = slice %6 {begin=2} %81: [f32; 2, 1] = transpose %80 %90: [f32; 2, "
             "1] = orthonormalize %81",
             {0, 1}},
        Case{"orthonormalize_zero_column",
             "%80: [f32; 3, 2] = map.mul %6, %9 %90: [f32; 3, 2] = orthonormalize %80",
             {0, 0, 0, 0, 0, 0}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Control, Ops,
    testing::Values(
        Case{"if_else", "%90: f32 = if_else %11 () { yield %10 } () { yield %9 }", {0}},
        Case{"for_loop",
             "%90: f32 = for_loop %9 {begin=2, end=5} (%20: i64, %21: f32) { %22: f32 = convert "
             "%20 %23: f32 = map.add %21, %22 yield %23 }",
             {9}},
        Case{"for_loop_backwards",
             "%90: f32 = for_loop %10 {begin=5, end=2} (%20: i64, %21: f32) { yield %9 }",
             {2}},
        Case{"while_loop",
             "%90: f32 = while_loop %10 {at_most=20} (%20: f32) { %21: f32 = host_size {size=100} "
             "%22: bool = map.lt %20, %21 yield %22 } (%23: f32) { %24: f32 = map.mul %23, %10 "
             "yield %24 }",
             {128}},
        Case{"while_loop_stops",
             "%90: f32 = while_loop %10 {at_most=3} (%20: f32) { %21: bool = const_scalar "
             "{value=1} yield %21 } (%23: f32) { %24: f32 = map.mul %23, %10 yield %24 }",
             {16}}),
    name_of);

TEST(Orthonormalize, ColumnsAreOrthonormal) {
  const std::vector<double> q = values_of("%90: [f32; 3, 2] = orthonormalize %6");
  EXPECT_NEAR(q[0] * q[0] + q[2] * q[2] + q[4] * q[4], 1, 1e-6);
  EXPECT_NEAR(q[1] * q[1] + q[3] * q[3] + q[5] * q[5], 1, 1e-6);
  EXPECT_NEAR(q[0] * q[1] + q[2] * q[3] + q[4] * q[5], 0, 1e-6);
  EXPECT_FLOAT_EQ(q[0], 0.6f);
}

// The second column is half the first one, but for one unit in the last place.
TEST(Orthonormalize, ZeroesAColumnThatDependsOnThoseBefore) {
  const std::vector<double> q = values_of(
      "%80: f32 = const_scalar {value=3} %81: f32 = const_scalar {value=1.5000001192092896} "
      "%82: [u32; 2] = iota %83: [u32; 1, 2] = reshape %82 %84: u32 = const_scalar {value=1} "
      "%85: [bool; 1, 2] = map.eq %83, %84 %86: [f32; 1, 2] = map.select %85, %81, %80 "
      "%87: [f32; 2, 2] = fill %86 %90: [f32; 2, 2] = orthonormalize %87");
  ASSERT_EQ(q.size(), 4u);
  EXPECT_FLOAT_EQ(q[0], std::sqrt(0.5f));
  EXPECT_FLOAT_EQ(q[2], std::sqrt(0.5f));
  EXPECT_EQ(q[1], 0);
  EXPECT_EQ(q[3], 0);
}

TEST(Hadamard, IsItsOwnInverse) {
  EXPECT_EQ(values_of("%80: [f32; 1, 4] = hadamard %5 %90: [f32; 1, 4] = hadamard %80"),
            (std::vector<double>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace cinch::interp
