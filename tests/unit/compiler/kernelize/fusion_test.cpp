// Structure of what kernelize makes: which operators share a kernel, and which must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/compiler/kernelize/sample.h"

namespace cinch::codegen {
namespace {

TEST(Fusion, fuses_masked_reductions_and_packing_of_one_array_into_one_sweep) {
  Sample s;
  const auto zero = s.b.constant(kF32, 0);
  const auto negative = s.b.map(ScalarOp::lt, s.g, zero);
  const auto sum = s.b.reduce(ScalarOp::add, s.g, ir::kAll, negative);
  const auto count = s.b.reduce(ScalarOp::add, s.b.convert(negative, kU32));
  s.add_field("mean", s.b.map(ScalarOp::div, sum, s.b.convert(count, kF32)));
  s.add_field("bits", negative);
  s.expect_sweeps(1);
}

TEST(Fusion, adds_integers_in_the_sweep_that_finds_their_places) {
  Sample s;
  const auto marked = s.b.convert(s.b.map(ScalarOp::lt, s.g, s.b.constant(kF32, 0)), kU32);
  const auto place =
      s.b.map(ScalarOp::shr, s.b.scan(ScalarOp::add, marked), s.b.constant_int(kU32, 3));
  s.add_field("sums", s.b.scatter_add(place, marked, s.pool().n()));
  s.expect_sweeps(1);
}

TEST(Fusion, keeps_a_map_behind_the_global_reduction_that_it_needs) {
  Sample s;
  const auto low = s.b.reduce(ScalarOp::min, s.g);
  s.add_field("codes", s.b.map(ScalarOp::sub, s.g, low));
  s.expect_sweeps(2);
}

TEST(Fusion, fuses_a_row_reduction_with_what_uses_it_per_row) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(512));
  const auto norm = s.b.reduce(ScalarOp::max, s.b.map(ScalarOp::abs, x), 1);
  s.add_field("norm", norm);
  s.add_field("codes", s.b.map(ScalarOp::div, x, norm));
  s.expect_sweeps(1);
}

TEST(Fusion, fuses_what_is_computed_from_a_row_result_and_stored_with_its_row) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(512));
  const auto norm =
      s.b.map(ScalarOp::sqrt, s.b.reduce(ScalarOp::add, s.b.map(ScalarOp::mul, x, x), 1));
  s.add_field("norm", norm);
  s.add_field("codes", s.b.map(ScalarOp::divide_or_zero, x, norm));
  s.expect_sweeps(1);
}

TEST(Fusion, transforms_rows_between_their_norms_and_their_codes) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(1024));
  const auto largest = s.b.reduce(ScalarOp::max, s.b.map(ScalarOp::abs, x), 1);
  const auto turned = s.b.butterflies(s.b.map(ScalarOp::divide_or_zero, x, largest));
  const auto after = s.b.reduce(ScalarOp::max, turned, 1);
  s.add_field("largest", largest);
  s.add_field("codes", s.b.map(ScalarOp::sub, turned, after));
  s.expect_sweeps(1);
}

TEST(Fusion, multiplies_rows_by_a_table_and_stores_the_vector_they_make) {
  Sample s;
  const auto sixteen = s.pool().const_int(16);
  const auto x = s.b.chunk(s.g, sixteen);
  ir::Table table{ir::matrix_type(kF32, sixteen, sixteen), {}};
  table.bits.assign(256, 0);
  const auto product = s.b.matmul(x, s.b.const_array(table));
  s.add_field("product", s.b.unchunk(s.b.map(ScalarOp::add, product, product), s.pool().n()));
  s.expect_sweeps(1);
}

TEST(Fusion, stores_transformed_rows_for_what_reads_them_in_another_order) {
  Sample s;
  const auto turned = s.b.butterflies(s.b.chunk(s.g, s.pool().const_int(64)));
  s.add_field("across", s.b.reduce(ScalarOp::add, turned, 0));
  s.expect_sweeps(2);
}

TEST(Fusion, fuses_selection_with_the_gather_of_what_is_selected) {
  Sample s;
  const auto bound = s.pool().n();
  s.program.info.wire.counts.push_back({"m", bound});
  const auto count_index = s.b.new_count("m", bound);
  const auto mask = s.b.map(ScalarOp::ge, s.b.map(ScalarOp::abs, s.g), s.b.constant(kF32, 0.5));
  const auto selected = s.b.nonzero(mask, count_index);
  s.add_field("index", selected.index);
  s.add_field("value", s.b.gather(s.g, selected.index));
  s.encode.results.counts.push_back(selected.count);
  s.expect_sweeps(1);
}

TEST(Fusion, fuses_a_state_update_with_the_sweep_that_makes_it) {
  Sample s;
  s.add_state("residual");
  const auto e = s.b.map(ScalarOp::add, s.g, s.b.state(0));
  const auto code = s.b.map(ScalarOp::ge, e, s.b.constant(kF32, 1));
  s.add_field("code", code);
  s.encode.results.states.push_back(
      s.b.map(ScalarOp::sub, e, s.b.convert(s.b.convert(code, kI32), kF32)));
  s.expect_sweeps(1);
}

TEST(Fusion, fuses_a_running_sum_into_the_selection_that_reads_it) {
  Sample s;
  const auto bound = s.pool().const_int(100);
  const auto count_index = s.b.new_count("m", bound);
  s.program.info.wire.counts.push_back({"m", bound});
  const auto equal = s.b.map(ScalarOp::eq, s.g, s.b.constant(kF32, 1));
  const auto rank = s.b.scan(ScalarOp::add, s.b.convert(equal, kU32), ir::kAll, true);
  const auto keep =
      s.b.map(ScalarOp::bit_and, equal, s.b.map(ScalarOp::lt, rank, s.b.constant_int(kU32, 100)));
  const auto selected = s.b.nonzero(keep, count_index);
  s.add_field("index", selected.index);
  s.encode.results.counts.push_back(selected.count);
  s.expect_sweeps(1);
}

TEST(Fusion, fuses_an_update_that_depends_on_row_results_of_a_chunked_vector) {
  Sample s;
  s.add_state("residual");
  const auto e = s.b.map(ScalarOp::add, s.g, s.b.state(0));
  const auto x = s.b.chunk(e, s.pool().const_int(256));
  const auto scale = s.b.reduce(ScalarOp::max, s.b.map(ScalarOp::abs, x), 1);
  const auto code = s.b.map(ScalarOp::round, s.b.map(ScalarOp::div, x, scale));
  s.add_field("scale", scale);
  s.add_field("code", code);
  const auto decoded = s.b.unchunk(s.b.map(ScalarOp::mul, code, scale), s.pool().n());
  s.encode.results.states.push_back(s.b.map(ScalarOp::sub, e, decoded));
  s.expect_sweeps(1);
}

TEST(Fusion, keeps_a_sorted_order_in_kernels_of_its_own) {
  Sample s;
  s.add_field("order", s.b.argsort(s.g));
  s.expect_sweeps(3);
}

TEST(Fusion, stores_a_value_once_that_many_sweeps_would_compute_from_several_arrays) {
  Sample s;
  s.add_state("a");
  s.add_state("b");
  const auto e = s.b.map(ScalarOp::add, s.b.map(ScalarOp::add, s.g, s.b.state(0)), s.b.state(1));
  const auto top = s.b.reduce(ScalarOp::max, e);
  const auto t = s.b.map(ScalarOp::div, e, top);
  const auto second = s.b.reduce(ScalarOp::add, t);
  s.add_field("x", s.b.map(ScalarOp::mul, t, second));
  const auto out = s.kernels();
  const auto has_shared = std::any_of(out.buffers.begin(), out.buffers.end(),
                                      [](const auto& b) { return b.name == "shared"; });
  EXPECT_TRUE(has_shared) << kir::print(out);
}

TEST(Fusion, scatters_into_the_next_state_in_place) {
  Sample s;
  s.add_state("pending");
  const auto sum = s.b.map(ScalarOp::add, s.g, s.b.state(0));
  const auto index = s.b.random_index(s.pool().const_int(5), s.pool().n(), {1, true});
  s.add_field("value", s.b.gather(sum, index));
  const auto zeros = s.b.fill(s.b.constant(kF32, 0), s.b.type(index));
  s.encode.results.states.push_back(s.b.scatter(sum, index, zeros));
  const auto out = s.kernels();
  for (const auto& buffer : out.buffers) EXPECT_NE(buffer.name, "scattered") << kir::print(out);
}

TEST(Fusion, runs_loops_over_carried_buffers) {
  Sample s;
  const auto half = s.b.constant(kF32, 0.5);
  const auto tau = s.b.while_loop(
      s.pool().const_int(20), {s.b.reduce(ScalarOp::max, s.g)},
      [&](auto carried) {
        const auto above = s.b.convert(s.b.map(ScalarOp::gt, s.g, carried[0]), kU32);
        return s.b.map(ScalarOp::lt, s.b.reduce(ScalarOp::add, above), s.b.constant_int(kU32, 10));
      },
      [&](auto carried) { return ir::ValueIds{s.b.map(ScalarOp::mul, carried[0], half)}; });
  s.add_field("tau", tau[0]);
  const auto out = s.kernels();
  const auto structure = kir::entry_structure(out, rt::EntryKind::Encode);
  EXPECT_EQ(structure.loops, 1);
  EXPECT_EQ(structure.sweeps, 2) << kir::print(out);
}

TEST(Fusion, scans_floats_by_tiles_with_a_finishing_step) {
  Sample s;
  s.add_field("x", s.b.scan(ScalarOp::add, s.g));
  const auto out = s.kernels();
  const auto structure = kir::entry_structure(out, rt::EntryKind::Encode);
  EXPECT_EQ(structure.finishes, 1) << kir::print(out);
}

TEST(Fusion, keeps_what_follows_a_selection_in_its_kernel) {
  Sample s;
  const auto n = s.pool().n();
  s.program.info.counts.push_back({"m", n});
  const auto found = s.b.nonzero(s.b.map(ScalarOp::gt, s.g, s.b.constant(kF32, 1)), 0);
  const auto values = s.b.gather(s.g, found.index);
  s.add_field("values", values);
  s.add_field("halves", s.b.map(ScalarOp::mul, values, s.b.constant(kF32, 0.5)));
  s.add_field("places", s.b.map(ScalarOp::add, found.index, s.b.iota(s.b.type(values).dims[0])));
  s.expect_sweeps(1);
}

TEST(Fusion, reduces_rows_of_what_it_stores) {
  Sample s;
  s.add_state("residual");
  const auto corrected = s.b.map(ScalarOp::add, s.g, s.b.state(0));
  s.encode.results.states = {corrected};
  const auto x = s.b.chunk(corrected, s.pool().const_int(64));
  s.add_field("code", s.b.map(ScalarOp::sub, x, s.b.reduce(ScalarOp::max, x, 1)));
  s.expect_sweeps(1);
}

// Each value is used twice: an algorithm that walks all paths instead of all values takes 2^120
// steps.
TEST(Fusion, plans_long_chains_over_matrices_at_once) {
  Sample s;
  auto x = s.b.reshape(s.g, ir::matrix_type(kF32, s.pool().rows(), s.pool().cols()));
  for (int i = 0; i < 60; ++i) x = s.b.map(ScalarOp::add, s.b.map(ScalarOp::mul, x, x), x);
  s.add_field("x", x);
  s.expect_sweeps(2);  // one looks at the vector alone, for what is not finite
}

}  // namespace
}  // namespace cinch::codegen
