// Facts about kernels: whether additions are an order of their groups.
#include "codegen/kir/structure.h"

#include <gtest/gtest.h>

#include "codegen/kir/builder.h"

namespace cinch::kir {
namespace {

// Is a kernel sequential that adds to a buffer of `dtype`?
bool is_sequential_adding_to(DType dtype) {
  KernelProgram program;
  const auto sums = add_buffer(
      program, {"sums", dtype, whole_element_bits(dtype), program.info.exprs.const_int(8)});
  KernelBuilder b(program, "adds", GroupKind::Tile);
  b.set_extent(program.info.exprs.n());
  b.elements();
  const ValueId place = b.const_u32(0);
  b.add_at(sums, place, b.convert(place, compute_type(dtype)));
  return program.kernels[b.finish()].info.is_sequential;
}

TEST(Structure, additions_of_integers_that_fill_their_memory_have_no_order) {
  EXPECT_FALSE(is_sequential_adding_to(kU32));
  EXPECT_FALSE(is_sequential_adding_to(kI32));
  EXPECT_FALSE(is_sequential_adding_to(kU64));
  EXPECT_TRUE(is_sequential_adding_to({DTypeKind::UInt, 40}));
  EXPECT_TRUE(is_sequential_adding_to({DTypeKind::UInt, 16}));
  EXPECT_TRUE(is_sequential_adding_to(kF32));
}

}  // namespace
}  // namespace cinch::kir
