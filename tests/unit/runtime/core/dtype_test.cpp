// Names, widths, storage and the two conversion rules of the scalar types.
#include "runtime/core/numbers/dtype.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/core/check.h"

namespace cinch {
namespace {

std::vector<DType> all_types() {
  std::vector<DType> types = {kBool, kF16, kBF16, kF32, kF64, kF8E4M3, kF8E5M2};
  for (int bits = 1; bits <= 64; ++bits) types.push_back(*make_uint(bits));
  for (int bits = 2; bits <= 64; ++bits) types.push_back(*make_int(bits));
  return types;
}

TEST(DTypeTest, NamesRoundTrip) {
  for (DType type : all_types()) EXPECT_EQ(parse_dtype(dtype_name(type)), type) << dtype_name(type);
  for (const char* name : {"", "u", "i", "u0", "i1", "u65", "u07", "i+3", "u100", "f", "f33", "int",
                           "u8 ", "F32", "b", "u4294967297"}) {
    EXPECT_EQ(parse_dtype(name), std::nullopt) << name;
  }
  EXPECT_FALSE(make_uint(0) || make_uint(65) || make_int(1) || make_int(65) || make_int(-3));
}

TEST(DTypeTest, StorageOfElements) {
  EXPECT_EQ(packed_bytes(*make_uint(3), 0), 0);
  EXPECT_EQ(packed_bytes(*make_uint(3), 3), 2);
  EXPECT_EQ(packed_bytes(kBool, 9), 2);
  EXPECT_EQ(packed_bytes(kF32, 5), 20);
  EXPECT_TRUE(is_bit_packed(*make_int(12)));
  EXPECT_FALSE(is_bit_packed(kI16));
  EXPECT_EQ(element_bytes(*make_int(12)), 2);
  EXPECT_EQ(element_bytes(*make_uint(33)), 8);
  EXPECT_THROW(packed_bytes(kU8, -1), InternalError);
}

TEST(DTypeTest, LimitsOfIntegers) {
  EXPECT_EQ(min_int(*make_int(2)), -2);
  EXPECT_EQ(max_int(*make_int(2)), 1u);
  EXPECT_EQ(min_int(kI64), INT64_MIN);
  EXPECT_EQ(max_int(kU64), UINT64_MAX);
  EXPECT_EQ(max_int(kBool), 1u);
}

TEST(DTypeTest, WideningChangesNoValue) {
  const auto widens = [](const char* from, const char* to) {
    return widens_losslessly(*parse_dtype(from), *parse_dtype(to));
  };
  EXPECT_TRUE(widens("u8", "u32"));
  EXPECT_TRUE(widens("u8", "i9"));
  EXPECT_FALSE(widens("u8", "i8"));
  EXPECT_FALSE(widens("i8", "u64"));
  EXPECT_TRUE(widens("i3", "f32"));
  EXPECT_TRUE(widens("u24", "f32"));
  EXPECT_FALSE(widens("u25", "f32"));
  EXPECT_TRUE(widens("i25", "f32"));
  EXPECT_FALSE(widens("i32", "f32"));
  EXPECT_TRUE(widens("i32", "f64"));
  EXPECT_TRUE(widens("u11", "f16"));
  EXPECT_TRUE(widens("u8", "bf16"));
  EXPECT_TRUE(widens("u4", "f8e4m3"));
  EXPECT_FALSE(widens("u5", "f8e4m3"));
  EXPECT_TRUE(widens("f16", "f32"));
  EXPECT_TRUE(widens("bf16", "f32"));
  EXPECT_FALSE(widens("f16", "bf16"));
  EXPECT_FALSE(widens("bf16", "f16"));
  EXPECT_TRUE(widens("f8e4m3", "f16"));
  EXPECT_TRUE(widens("f8e4m3", "bf16"));
  EXPECT_TRUE(widens("f8e5m2", "f16"));
  EXPECT_FALSE(widens("f8e5m2", "f8e4m3"));
  EXPECT_FALSE(widens("f8e4m3", "f8e5m2"));
  EXPECT_FALSE(widens("f64", "f32"));
  EXPECT_TRUE(widens("bool", "u1"));
  EXPECT_TRUE(widens("bool", "f16"));
  EXPECT_FALSE(widens("u1", "bool"));
  EXPECT_FALSE(widens("f32", "i64"));
}

// Widening is an order: through a type in between nothing is gained.
TEST(DTypeTest, WideningIsTransitive) {
  const std::vector<DType> types = all_types();
  for (DType a : types) {
    EXPECT_TRUE(widens_losslessly(a, a));
    for (DType b : types) {
      if (!widens_losslessly(a, b)) continue;
      for (DType c : types) {
        if (!widens_losslessly(b, c)) continue;
        EXPECT_TRUE(widens_losslessly(a, c))
            << dtype_name(a) << " " << dtype_name(b) << " " << dtype_name(c);
      }
    }
  }
}

TEST(DTypeTest, ArithmeticTypes) {
  const auto common = [](const char* a, const char* b) -> std::string {
    const auto type = common_arithmetic_type(*parse_dtype(a), *parse_dtype(b));
    const auto swapped = common_arithmetic_type(*parse_dtype(b), *parse_dtype(a));
    EXPECT_EQ(type, swapped) << a << " " << b;
    return type ? dtype_name(*type) : "none";
  };
  EXPECT_EQ(common("u8", "u8"), "i32");
  EXPECT_EQ(common("u8", "u32"), "u32");
  EXPECT_EQ(common("i3", "u32"), "none");
  EXPECT_EQ(common("i32", "u32"), "none");
  EXPECT_EQ(common("u32", "i64"), "i64");
  EXPECT_EQ(common("u33", "u40"), "u40");
  EXPECT_EQ(common("f16", "bf16"), "f32");
  EXPECT_EQ(common("f16", "f64"), "f64");
  EXPECT_EQ(common("i4", "f32"), "f32");
  EXPECT_EQ(common("i32", "f32"), "none");
  EXPECT_EQ(common("i32", "f64"), "f64");
  EXPECT_EQ(common("bool", "bool"), "i32");
  EXPECT_EQ(arithmetic_type(*make_uint(31)), kI32);
  EXPECT_EQ(arithmetic_type(kU32), kU32);
  EXPECT_EQ(arithmetic_type(*make_int(33)), *make_int(33));
}

}  // namespace
}  // namespace cinch
