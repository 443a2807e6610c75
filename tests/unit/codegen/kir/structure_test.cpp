// Facts about kernels: whether their groups have an order.
#include "codegen/kir/structure.h"

#include <gtest/gtest.h>

#include "codegen/kir/builder.h"

namespace cinch::kir {
namespace {

// Is a kernel in order that adds to a buffer of `dtype`?
bool goes_in_order_adding_to(DType dtype) {
  KernelProgram program;
  const auto sums = add_buffer(
      program, {"sums", dtype, whole_element_bits(dtype), program.info.exprs.const_int(8)});
  KernelBuilder b(program, "adds", GroupKind::Tile);
  b.set_extent(program.info.exprs.n());
  b.elements();
  const ValueId place = b.const_u32(0);
  b.add_at(sums, place, b.convert(place, compute_type(dtype)));
  return goes_in_order(program, program.kernels[b.finish()]);
}

TEST(Structure, additions_of_integers_that_fill_their_memory_have_no_order) {
  EXPECT_FALSE(goes_in_order_adding_to(kU32));
  EXPECT_FALSE(goes_in_order_adding_to(kI32));
  EXPECT_FALSE(goes_in_order_adding_to(kU64));
  EXPECT_TRUE(goes_in_order_adding_to({DTypeKind::UInt, 40}));
  EXPECT_TRUE(goes_in_order_adding_to({DTypeKind::UInt, 16}));
  EXPECT_TRUE(goes_in_order_adding_to(kF32));
}

TEST(Structure, a_sequential_kernel_that_adds_nothing_goes_in_order) {
  KernelProgram program;
  KernelBuilder b(program, "sweep", GroupKind::Tile);
  b.set_extent(program.info.exprs.n());
  const auto index = b.finish();
  EXPECT_FALSE(goes_in_order(program, program.kernels[index]));
  program.kernels[index].info.is_sequential = true;
  EXPECT_TRUE(goes_in_order(program, program.kernels[index]));
}

}  // namespace
}  // namespace cinch::kir
