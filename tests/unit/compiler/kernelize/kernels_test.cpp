// Kernels of kernelize on the CPU compared with the interpreter: payloads and states bit for bit.
#include "tests/unit/compiler/kernelize/sample.h"

namespace cinch::codegen {
namespace {

TEST(Kernels, masked_reductions_and_bits) {
  Sample s;
  const auto negative = s.b.map(ScalarOp::lt, s.g, s.b.constant(kF32, 0));
  s.add_field("sum", s.b.reduce(ScalarOp::add, s.g, ir::kAll, negative));
  s.add_field("high", s.b.reduce(ScalarOp::max, s.g));
  s.add_field("count", s.b.reduce(ScalarOp::add, s.b.convert(negative, kU32)));
  s.add_field("bits", negative);
  compare(s);
}

TEST(Kernels, reductions_with_a_lambda) {
  Sample s;
  const std::array types = {kF32, kU32};
  const auto larger = s.b.combiner(types, [&](auto a, auto b) {
    const auto first = s.b.map(ScalarOp::ge, a[0], b[0]);
    return ir::ValueIds{s.b.select(first, a[0], b[0]), s.b.select(first, a[1], b[1])};
  });
  const auto found = s.b.reduce({s.g, s.b.iota(s.pool().n())},
                                {s.b.constant(kF32, -1e30), s.b.constant_int(kU32, 0)}, larger,
                                ir::kAll, s.b.map(ScalarOp::lt, s.g, s.b.constant(kF32, 1)));
  s.add_field("value", found[0]);
  s.add_field("index", found[1]);
  compare(s);
}

TEST(Kernels, rows_with_codes_of_odd_width) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(7));
  const auto norm = s.b.reduce(ScalarOp::max, s.b.map(ScalarOp::abs, x), 1);
  const auto code = s.b.stochastic_round(
      s.b.map(ScalarOp::divide_or_zero, s.b.map(ScalarOp::mul, x, s.b.constant(kF32, 3)), norm),
      {1, false});
  s.add_field("norm", norm);
  s.add_field("code", s.b.convert(s.b.convert(code, kI32), *make_int(3)));
  compare(s);
}

TEST(Kernels, long_rows) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(3000));
  s.add_field("sum", s.b.reduce(ScalarOp::add, x, 1));
  s.add_field("columns", s.b.reduce(ScalarOp::add, x, 0));
  compare(s);
}

TEST(Kernels, selection_with_limit) {
  Sample s;
  const auto bound = s.pool().min(s.pool().n(), s.pool().const_int(600));
  const auto mask = s.b.map(ScalarOp::ge, s.b.map(ScalarOp::abs, s.g), s.b.constant(kF32, 0.5));
  const auto selected = select(s, mask, bound, bound);
  add_counted_field(s, "index", selected.index, bound);
  add_counted_field(s, "value", s.b.gather(s.g, selected.index), bound);
  compare(s);
}

TEST(Kernels, selection_by_a_running_sum) {
  Sample s;
  const auto equal = s.b.map(ScalarOp::ge, s.g, s.b.constant(kF32, 0.25));
  const auto rank = s.b.scan(ScalarOp::add, s.b.convert(equal, kU32), ir::kAll, true);
  const auto keep =
      s.b.map(ScalarOp::bit_and, equal, s.b.map(ScalarOp::lt, rank, s.b.constant_int(kU32, 700)));
  const auto selected = select(s, keep, s.pool().n());
  add_counted_field(s, "index", selected.index, s.pool().n());
  s.add_field("rank", rank);
  compare(s);
}

TEST(Kernels, selected_values_reduced_afterwards) {
  Sample s;
  const auto selected =
      select(s, s.b.map(ScalarOp::gt, s.g, s.b.constant(kF32, 0.5)), s.pool().n());
  const auto values = s.b.gather(s.g, selected.index);
  const auto mean = s.b.reduce(ScalarOp::add, values);
  s.add_field("sum", mean);
  add_counted_field(s, "scaled", s.b.map(ScalarOp::mul, values, mean), s.pool().n());
  compare(s);
}

TEST(Kernels, states_updated_and_zeroed_in_place) {
  Sample s;
  add_zero_state(s, "velocity");
  add_zero_state(s, "pending");
  const auto velocity =
      s.b.map(ScalarOp::add, s.b.map(ScalarOp::mul, s.b.state(0), s.b.constant(kF32, 0.5)), s.g);
  const auto pending = s.b.map(ScalarOp::add, s.b.state(1), velocity);
  const auto num = s.pool().min(s.pool().n(), s.pool().const_int(40));
  const auto index = s.b.random_index(num, s.pool().n(), {1, true});
  s.add_field("value", s.b.gather(pending, index));
  const auto zeros = s.b.fill(s.b.constant(kF32, 0), {kF32, 1, {num, {}}});
  s.encode.results.states = {s.b.scatter(velocity, index, zeros),
                             s.b.scatter(pending, index, zeros)};
  s.add_field("old", pending);
  compare(s);
}

TEST(Kernels, float_scans) {
  Sample s;
  s.add_field("sums", s.b.scan(ScalarOp::add, s.g));
  s.add_field("before", s.b.scan(ScalarOp::max, s.g, ir::kAll, true));
  const auto x = s.b.chunk(s.g, s.pool().const_int(1500));
  s.add_field("rows", s.b.scan(ScalarOp::add, x, 1));
  s.add_field("columns", s.b.scan(ScalarOp::add, x, 0, true));
  compare(s);
}

TEST(Kernels, sorted_orders) {
  Sample s;
  const auto order = s.b.argsort(s.g, true);
  s.add_field("order", order);
  s.add_field("sorted", s.b.gather(s.g, order));
  const auto x = s.b.chunk(s.g, s.pool().const_int(9));
  s.add_field("rows", s.b.argsort(x, false, 1));
  compare(s);
}

TEST(Kernels, histograms_and_repeated_additions) {
  Sample s;
  const auto bin =
      s.b.convert(s.b.map(ScalarOp::clamp, s.b.map(ScalarOp::mul, s.g, s.b.constant(kF32, 4)),
                          s.b.constant(kF32, 0), s.b.constant(kF32, 20)),
                  kU32);
  s.add_field("histogram", s.b.histogram(bin, s.pool().const_int(16)));
  s.add_field("sums", s.b.scatter_add(bin, s.g, s.pool().const_int(24)));
  const auto signs = s.b.convert(s.b.map(ScalarOp::mul, s.g, s.b.constant(kF32, 1000)), kI32);
  s.add_field("integers", s.b.scatter_add(bin, signs, s.pool().const_int(24)));
  compare(s);
}

TEST(Kernels, moves) {
  Sample s;
  const auto& n = s.pool().n();
  const auto x = s.b.chunk(s.g, s.pool().const_int(6));
  s.add_field("transposed", s.b.transpose(x));
  s.add_field("joined", s.b.concat({s.g, s.b.map(ScalarOp::neg, s.g)}));
  s.add_field("flat", s.b.unchunk(s.b.map(ScalarOp::mul, x, s.b.constant(kF32, 2)), n));
  s.add_field("packed", s.b.pack(s.b.convert(s.b.map(ScalarOp::abs, s.g), kU32), 5));
  s.add_field("first", s.b.gather(s.g, s.b.constant_int(kI32, 0)));
  compare(s);
}

TEST(Kernels, matrix_products) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(5));
  s.add_field("gram", s.b.matmul(s.b.transpose(x), x));
  compare(s);
}

TEST(Kernels, loops_and_branches) {
  Sample s;
  const auto half = s.b.constant(kF32, 0.5);
  const auto found = s.b.while_loop(
      s.pool().const_int(20), {s.b.reduce(ScalarOp::max, s.g), s.g},
      [&](auto carried) {
        const auto above = s.b.convert(s.b.map(ScalarOp::gt, s.g, carried[0]), kU32);
        return s.b.map(ScalarOp::lt, s.b.reduce(ScalarOp::add, above), s.b.constant_int(kU32, 10));
      },
      [&](auto carried) {
        return ir::ValueIds{s.b.map(ScalarOp::mul, carried[0], half),
                            s.b.map(ScalarOp::add, carried[1], carried[0])};
      });
  const auto summed = s.b.for_loop(
      s.pool().const_int(0), s.pool().const_int(3), {found[1]}, [&](auto i, auto carried) {
        return ir::ValueIds{s.b.map(ScalarOp::mul, carried[0], s.b.convert(i, kF32))};
      });
  const auto chosen = s.b.if_else(
      s.b.map(ScalarOp::gt, found[0], half), [&] { return ir::ValueIds{s.g, found[0]}; },
      [&] { return ir::ValueIds{s.b.map(ScalarOp::neg, found[1]), half}; });
  s.add_field("tau", chosen[1]);
  s.add_field("x", chosen[0]);
  s.add_field("y", summed[0]);
  compare(s);
}

}  // namespace
}  // namespace cinch::codegen
