// Cost formulas against counts by hand, and the structure of entries.
#include "codegen/kir/cost.h"

#include <gtest/gtest.h>

#include <functional>

#include "codegen/kir/builder.h"
#include "codegen/kir/kir.h"
#include "runtime/core/sizes/host_expr.h"
#include "tests/unit/codegen/kir/sample_programs.h"

namespace cinch::kir {
namespace {

std::int64_t at(const KernelProgram& program, HostExprId id, std::int64_t n) {
  const HostEnv env{.n = n, .rows = n, .cols = 1};
  return program.info.exprs->eval_int(id, env).value();
}

TEST(Cost, one_sweep_with_bits_and_partials) {
  KernelProgram program = sample_reduce();
  annotate_costs(program);
  const rt::KernelInfo& sweep = program.kernels[0].info;
  // 4 bytes in; one bit out; per tile an f32, an f32, a u32 and a flag of one byte.
  EXPECT_EQ(at(program, sweep.bytes_read, 5000), 20000);
  EXPECT_EQ(at(program, sweep.bytes_written, 5000), 625 + 5 * 13);
  EXPECT_EQ(at(program, sweep.bytes_written, 0), 0);
  const rt::KernelInfo& finish = program.kernels[1].info;
  EXPECT_EQ(at(program, finish.bytes_read, 5000), 5 * 13);
  EXPECT_EQ(at(program, finish.bytes_written, 5000), 0);
}

TEST(Cost, a_tile_read_twice_counts_once) {
  KernelProgram program = sample_compact();
  const KernelBytes bytes = kernel_bytes(program, program.kernels[0]);
  EXPECT_EQ(at(program, bytes.read, 3000), 12000);
  // At most every element is kept; the count is a 4 byte cell whatever the number of groups.
  EXPECT_EQ(at(program, bytes.written, 3000), 3000 * 8 + 4);
}

TEST(Cost, rows_stay_on_chip_up_to_a_length) {
  KernelProgram narrow = sample_rows(512, 4);
  const KernelBytes a = kernel_bytes(narrow, narrow.kernels[0]);
  // The limit keeps the loads within the n elements; codes fill whole rows.
  EXPECT_EQ(at(narrow, a.read, 1000), 4000);
  EXPECT_EQ(at(narrow, a.written, 1000), 2 * 4 + 512);
  KernelProgram wide = sample_rows(100000, 6);
  const KernelBytes b = kernel_bytes(wide, wide.kernels[0]);
  EXPECT_EQ(at(wide, b.read, 1000), 2 * 4000);
}

TEST(Cost, packed_widths_round_up_once_a_launch) {
  KernelProgram program = sample_copy(*make_uint(11), 11);
  const KernelBytes bytes = kernel_bytes(program, program.kernels[0]);
  EXPECT_EQ(at(program, bytes.read, 3), 5);
  EXPECT_EQ(at(program, bytes.written, 3), 5);
}

TEST(Cost, buffers_add_up_to_the_kernel) {
  KernelProgram program = sample_compact();
  const KernelBytes all = kernel_bytes(program, program.kernels[0]);
  std::int64_t read = 0, written = 0, least_written = 0;
  std::size_t num_read = 0;
  for (const BufferBytes& each : buffer_bytes(program, program.kernels[0])) {
    read += at(program, each.bytes.read, 3000);
    written += at(program, each.bytes.written, 3000);
    least_written += at(program, each.bytes.least_written, 3000);
    num_read += at(program, each.bytes.read, 3000) > 0 ? 1 : 0;
  }
  EXPECT_EQ(num_read, 1U);  // the gradient alone
  EXPECT_EQ(read, at(program, all.read, 3000));
  EXPECT_EQ(written, at(program, all.written, 3000));
  EXPECT_EQ(least_written, at(program, all.least_written, 3000));
}

TEST(Cost, entries_sum_launches_and_zero_fills) {
  KernelProgram program = sample_compact();
  annotate_costs(program);
  const EntryBytes bytes = entry_bytes(program, rt::EntryKind::Encode);
  EXPECT_EQ(at(program, bytes.read, 3000), 12000);
  // Zeroed: three tiles of two words and two more, and the count.
  EXPECT_EQ(at(program, bytes.written, 3000), 24004 + (3 * 2 + 2) * 8 + 4);
  EXPECT_EQ(at(program, bytes.sweeps_written, 3000), 24004);
}

TEST(Cost, what_data_decides_has_a_least) {
  KernelProgram program = sample_compact();
  const KernelBytes bytes = kernel_bytes(program, program.kernels[0]);
  EXPECT_EQ(at(program, bytes.least_read, 3000), 12000);
  EXPECT_EQ(at(program, bytes.least_written, 3000), 0);
  KernelProgram rows = sample_rows(512, 4);
  const KernelBytes exact = kernel_bytes(rows, rows.kernels[0]);
  EXPECT_EQ(exact.least_read, exact.read);
  EXPECT_EQ(exact.least_written, exact.written);
}

// One load of a gradient of n elements by `predicate`, in a kernel of n + 24 elements.
KernelProgram predicated_load(const std::function<ValueId(KernelBuilder&)>& predicate) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_workspace(program, "in", kF32, pool.n());
  KernelBuilder b(program, "sweep", GroupKind::Tile);
  b.set_extent(pool.add(pool.n(), pool.const_int(24)));
  b.elements();
  b.load_at(in, b.element(), predicate(b));
  b.finish();
  return program;
}

TEST(Cost, a_predicate_on_the_place_is_exact) {
  KernelProgram below = predicated_load([](KernelBuilder& b) {
    const ValueId n = b.convert(b.host_size(b.program().info.exprs->n()), ComputeType::U32);
    return b.lt(b.element(), n);
  });
  const KernelBytes padded = kernel_bytes(below, below.kernels[0]);
  EXPECT_EQ(at(below, padded.read, 1000), 4000);
  EXPECT_EQ(padded.least_read, padded.read);
  KernelProgram within = predicated_load([](KernelBuilder& b) {
    return b.logical_and(b.lt(b.element(), b.const_u32(30)),
                         b.scalar(ScalarOp::ge, {b.element(), b.const_u32(10)}));
  });
  const KernelBytes slice = kernel_bytes(within, within.kernels[0]);
  EXPECT_EQ(at(within, slice.least_read, 1000), 20 * 4);
  EXPECT_EQ(at(within, slice.read, 1), 15 * 4);
}

TEST(Cost, a_predicate_on_data_is_not) {
  // The place as a float, and a place of a signed type, are not the place.
  const auto as_float = [](KernelBuilder& b) {
    return b.lt(b.convert(b.element(), ComputeType::F32), b.const_f32(7));
  };
  const auto narrow = [](KernelBuilder& b) {
    return b.lt(b.convert(b.element(), kU32, kU8), b.const_u32(7));
  };
  for (const auto& predicate :
       {std::function<ValueId(KernelBuilder&)>(as_float), {std::function(narrow)}}) {
    KernelProgram program = predicated_load(predicate);
    const KernelBytes bytes = kernel_bytes(program, program.kernels[0]);
    EXPECT_EQ(at(program, bytes.read, 1000), 4096);
    EXPECT_EQ(at(program, bytes.least_read, 1000), 0);
  }
}

TEST(Cost, branches_and_loops_have_a_most_and_a_least) {
  KernelProgram program = sample_reduce();
  annotate_costs(program);
  HostExprPool& pool = *program.info.exprs;
  const rt::Step sweep{.kind = rt::StepKind::Launch, .index = 0};
  const rt::Step finish{.kind = rt::StepKind::Launch, .index = 1};
  rt::Step branch{.kind = rt::StepKind::If, .index = 0};
  branch.body = {sweep, sweep};
  branch.orelse = {sweep};
  auto& steps = program.entries[1].steps;
  steps = {branch};
  EntryBytes bytes = entry_bytes(program, rt::EntryKind::Encode);
  EXPECT_EQ(at(program, bytes.read, 1000), 2 * 4000);
  EXPECT_EQ(at(program, bytes.least_read, 1000), 4000);
  rt::Step loop{.kind = rt::StepKind::While, .index = 0};
  loop.expr = pool.const_int(3);
  loop.cond = {finish};
  loop.body = {sweep};
  steps = {loop};
  bytes = entry_bytes(program, rt::EntryKind::Encode);
  EXPECT_EQ(at(program, bytes.read, 1000), 3 * (4000 + 13));
  EXPECT_EQ(at(program, bytes.least_read, 1000), 13);
  steps[0].expr = pool.const_int(0);
  bytes = entry_bytes(program, rt::EntryKind::Encode);
  EXPECT_EQ(at(program, bytes.least_read, 1000), 0);
}

TEST(Cost, loops_count_their_bound) {
  KernelProgram program = sample_compact();
  annotate_costs(program);
  HostExprPool& pool = *program.info.exprs;
  auto& steps = program.entries[1].steps;
  rt::Step loop{.kind = rt::StepKind::For, .index = 0};
  loop.expr = pool.const_int(2);
  loop.expr2 = pool.const_int(5);
  loop.body = {{.kind = rt::StepKind::Launch, .index = 0}};
  steps = {loop};
  EXPECT_EQ(at(program, entry_bytes(program, rt::EntryKind::Encode).read, 1000), 3 * 4000);
}

TEST(Structure, counts_launches_by_role) {
  const KernelProgram program = sample_reduce();
  const EntryStructure s = entry_structure(program, rt::EntryKind::Encode);
  EXPECT_EQ(s.sweeps, 1);
  EXPECT_EQ(s.finishes, 1);
  EXPECT_EQ(describe_structure(program, rt::EntryKind::Encode), "encode: 1 sweep, 1 finish");
  EXPECT_EQ(describe_structure(program, rt::EntryKind::Decode), "");
  EXPECT_EQ(describe_structure(sample_compact(), rt::EntryKind::Encode),
            "encode: 1 sweep, 2 zeros");
}

}  // namespace

// Facts about kernels: whether additions are an order of their groups.

namespace {

// Is a kernel sequential that adds to a buffer of `dtype`?
bool is_sequential_adding_to(DType dtype) {
  KernelProgram program;
  const auto sums = add_buffer(
      program, {"sums", dtype, whole_element_bits(dtype), program.info.exprs->const_int(8)});
  KernelBuilder b(program, "adds", GroupKind::Tile);
  b.set_extent(program.info.exprs->n());
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
