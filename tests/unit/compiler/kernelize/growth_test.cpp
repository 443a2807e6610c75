// The size of kernels grows with the program, not with the number of paths through it: a value that
// would be computed too often is stored.
#include <gtest/gtest.h>

#include "tests/unit/compiler/kernelize/sample.h"

namespace cinch::codegen {
namespace {

// All instructions of a program whose one field is `value_of(sample, length)`.
template <typename Make>
std::size_t num_instrs(int length, const Make& value_of) {
  Sample s;
  s.add_field("x", value_of(s, length));
  std::size_t num = 0;
  for (const kir::Kernel& kernel : s.kernels().kernels) {
    for (const kir::Section& section : kernel.sections) num += section.instrs.size();
  }
  return num;
}

// Ten times the length: at most this many times the instructions, constant parts included.
constexpr std::size_t kMostGrowth = 12;

ValueId gathers(Sample& s, int length) {
  const auto n = s.pool().n();
  const auto last = s.b.host_size(s.pool().sub(n, s.pool().const_int(1)), kU32);
  const auto index = s.b.map(ScalarOp::sub, last, s.b.iota(n));
  ValueId x = s.g;
  for (int i = 0; i < length; ++i) {
    x = s.b.map(ScalarOp::add, s.b.gather(x, index), s.b.map(ScalarOp::mul, x, x));
    x = s.b.map(ScalarOp::add, x, s.b.gather(x, index));
  }
  return x;
}

ValueId means(Sample& s, int length) {
  ValueId x = s.g;
  for (int i = 0; i < length; ++i) {
    x = s.b.map(ScalarOp::sub, x, s.b.reduce(ScalarOp::add, x));
  }
  return x;
}

ValueId maps(Sample& s, int length) {
  ValueId x = s.g;
  for (int i = 0; i < length; ++i) x = s.b.map(ScalarOp::add, s.b.map(ScalarOp::mul, x, x), x);
  return x;
}

TEST(Growth, OfGathersBehindGathers) {
  EXPECT_LE(num_instrs(200, gathers), kMostGrowth * num_instrs(20, gathers));
}

TEST(Growth, OfSumsBehindSums) {
  EXPECT_LE(num_instrs(2000, means), kMostGrowth * num_instrs(200, means));
}

TEST(Growth, OfChains) {
  EXPECT_LE(num_instrs(1000, maps), kMostGrowth * num_instrs(100, maps));
}

}  // namespace
}  // namespace cinch::codegen
