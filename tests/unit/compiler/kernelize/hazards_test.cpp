// Hazards of fusion: counted sizes, changes in place, values of one kernel that another shape,
// level or phase needs.
#include "tests/unit/compiler/kernelize/sample.h"

namespace cinch::codegen {
namespace {

ir::Type vector_of(HostExprId size) {
  return ir::vector_type(kF32, size);
}

TEST(Hazards, what_follows_a_selection_draws_by_position) {
  Sample s;
  const auto n = s.pool().n();
  const auto selected = select(s, s.b.map(ScalarOp::gt, s.g, s.b.constant(kF32, 0.25)), n);
  const auto values = s.b.gather(s.g, selected.index);
  const auto drawn = s.b.draw(ir::OpKind::random, s.b.type(values), {1, false});
  add_counted_field(s, "scaled", s.b.map(ScalarOp::mul, values, drawn), n);
  add_counted_field(s, "rounded", s.b.stochastic_round(values, {2, false}), n);
  add_counted_field(s, "place",
                    s.b.map(ScalarOp::add, s.b.iota(s.b.type(values).dims[0]), selected.index), n);
  compare(s);
}

TEST(Hazards, sizes_wait_for_the_selection_that_finds_them) {
  Sample s;
  const auto n = s.pool().n();
  const auto selected = select(s, s.b.map(ScalarOp::gt, s.g, s.b.constant(kF32, 0.25)), n);
  const auto m = s.b.type(selected.index).dims[0];
  add_counted_field(s, "ones", s.b.fill(s.b.constant(kF32, 1), vector_of(m)), n);
  s.add_field("drawn",
              s.b.reduce(ScalarOp::add, s.b.draw(ir::OpKind::random, vector_of(m), {1, false})));
  s.add_field("size", s.b.host_size(m, kU32));
  const auto other =
      s.b.nonzero(s.b.map(ScalarOp::lt, s.g, s.b.constant(kF32, 0)), s.b.new_count("unread", n));
  const auto unread = s.b.type(other.index).dims[0];
  s.add_field("sum", s.b.reduce(ScalarOp::add, s.b.iota(unread)));
  compare(s);
}

TEST(Hazards, selected_positions_read_elsewhere) {
  Sample s;
  const auto n = s.pool().n();
  const auto selected = select(s, s.b.map(ScalarOp::gt, s.g, s.b.constant(kF32, -9)), n);
  const auto m = s.b.type(selected.index).dims[0];
  const auto reversed = s.b.map(
      ScalarOp::sub, s.b.map(ScalarOp::sub, s.b.host_size(m, kU32), s.b.constant_int(kU32, 1)),
      s.b.iota(m));
  const auto sum = s.b.map(ScalarOp::add, s.b.gather(selected.index, reversed), selected.index);
  add_counted_field(s, "sum", sum, n);
  compare(s);
}

TEST(Hazards, a_scattered_base_is_read_later_through_other_operators) {
  Sample s;
  add_zero_state(s, "x");
  const auto n = s.pool().n();
  const auto num = s.pool().min(n, s.pool().const_int(30));
  const auto first = s.b.random_index(num, n, {1, true});
  const auto second = s.b.random_index(num, n, {2, true});
  const auto once = s.b.scatter(s.g, first, s.b.constant(kF32, 100));
  const auto doubled = s.b.map(ScalarOp::mul, once, s.b.constant(kF32, 2));
  const auto twice = s.b.scatter(once, second, s.b.constant(kF32, 200));
  s.add_field("sum", s.b.reduce(ScalarOp::add, doubled));
  s.encode.results.states = {twice};
  compare(s);
}

TEST(Hazards, a_scatter_reads_its_base_elsewhere) {
  Sample s;
  add_zero_state(s, "x");
  const auto n = s.pool().n();
  const auto num = s.pool().min(n, s.pool().const_int(30));
  const auto once = s.b.scatter(s.g, s.b.random_index(num, n, {1, true}), s.b.constant(kF32, 9));
  const auto moved = s.b.gather(once, s.b.random_index(num, n, {2, true}));
  s.encode.results.states = {s.b.scatter(once, s.b.iota(num), moved)};
  compare(s);
}

TEST(Hazards, states_trade_places) {
  Sample s;
  add_zero_state(s, "a");
  add_zero_state(s, "b");
  const auto next = s.b.map(ScalarOp::add, s.b.state(1), s.g);
  s.add_field("sum", s.b.map(ScalarOp::sub, s.b.state(0), next));
  s.encode.results.states = {next, s.b.state(0)};
  compare(s);
}

TEST(Hazards, rows_are_scattered_whole) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(3));
  const auto rows = s.b.type(x).dims[0];
  const auto num = s.pool().min(rows, s.pool().const_int(20));
  const auto index = s.b.random_index(num, rows, {1, true});
  const auto doubled = s.b.map(ScalarOp::mul, s.b.gather(x, index), s.b.constant(kF32, 2));
  s.add_field("rows", s.b.scatter(x, index, doubled));
  const auto last = s.b.map(ScalarOp::sub, s.b.host_size(rows, kU32), s.b.constant_int(kU32, 1));
  s.add_field("row", s.b.scatter(x, last, s.b.constant(kF32, 5)));
  compare(s);
}

TEST(Hazards, every_result_of_a_row_reduction_is_kept) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(6));
  const std::array types = {kF32, kU32};
  const auto high = s.b.reduce(ScalarOp::max, s.g);
  const auto larger = s.b.combiner(types, [&](auto a, auto c) {
    const auto first = s.b.map(ScalarOp::ge, s.b.map(ScalarOp::min, a[0], high), c[0]);
    return ir::ValueIds{s.b.select(first, a[0], c[0]), s.b.select(first, a[1], c[1])};
  });
  const auto columns = s.b.gather_along(x, s.b.fill(s.b.constant_int(kU32, 2), s.b.type(x)), 1);
  const auto found = s.b.reduce({x, s.b.convert(columns, kU32)},
                                {s.b.constant(kF32, -1e30), s.b.constant_int(kU32, 7)}, larger, 1);
  s.add_field("sum", s.b.reduce(ScalarOp::add, found[1]));
  s.add_field("columns", s.b.transpose(found[1]));
  s.add_field("spread", s.b.map(ScalarOp::sub, x, s.b.convert(found[1], kF32)));
  compare(s);
}

TEST(Hazards, other_shapes_join_a_kernel_over_rows) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(6));
  const auto rows = s.b.type(x).dims[0];
  const auto mean = s.b.reduce(ScalarOp::add, x, 1);
  s.add_field("centred", s.b.map(ScalarOp::sub, x, mean));
  s.add_field("turned", s.b.transpose(x));
  const auto six = s.pool().const_int(6);
  s.add_field("again",
              s.b.map(ScalarOp::add, s.b.reshape(x, ir::matrix_type(kF32, six, rows)),
                      s.b.reshape(mean, ir::matrix_type(kF32, s.pool().const_int(1), rows))));
  compare(s);
}

TEST(Hazards, a_wider_matrix_with_as_many_rows) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(4));
  const auto sum = s.b.reduce(ScalarOp::add, x, 1);
  const auto wide =
      s.b.draw(ir::OpKind::random,
               ir::matrix_type(kF32, s.b.type(x).dims[0], s.pool().const_int(9)), {1, false});
  s.add_field("wide", s.b.map(ScalarOp::add, wide, sum));
  compare(s);
}

TEST(Hazards, a_running_sum_meets_row_means) {
  Sample s;
  const auto n = s.pool().n();
  const auto positive = s.b.convert(s.b.map(ScalarOp::gt, s.g, s.b.constant(kF32, 0)), kU32);
  const auto rank = s.b.convert(s.b.scan(ScalarOp::add, positive), kF32);
  const auto x = s.b.chunk(s.g, s.pool().const_int(8));
  const auto centred = s.b.unchunk(s.b.map(ScalarOp::sub, x, s.b.reduce(ScalarOp::max, x, 1)), n);
  const auto both = s.b.map(ScalarOp::add, rank, centred);
  s.add_field("both", both);
  s.add_field("twice", s.b.map(ScalarOp::mul, both, rank));
  compare(s);
}

TEST(Hazards, narrow_integers_wrap) {
  Sample s;
  const auto bytes =
      s.b.convert(s.b.map(ScalarOp::add, s.b.map(ScalarOp::abs, s.g), s.b.constant(kF32, 90)), kU8);
  s.add_field("sum", s.b.reduce(ScalarOp::add, bytes));
  s.add_field("running", s.b.convert(s.b.scan(ScalarOp::add, bytes), kF32));
  const auto x = s.b.chunk(s.b.convert(bytes, *make_int(12)), s.pool().const_int(50));
  s.add_field("rows", s.b.convert(s.b.reduce(ScalarOp::add, x, 1), kF32));
  compare(s);
}

TEST(Hazards, scalars_of_less_than_a_byte) {
  Sample s;
  s.add_field("any", s.b.map(ScalarOp::gt, s.b.reduce(ScalarOp::max, s.g), s.b.constant(kF32, 1)));
  s.add_field("three", s.b.constant_int(*make_uint(3), 5));
  compare(s);
}

TEST(Hazards, rows_of_one_element) {
  Sample s;
  const auto x = s.b.chunk(s.g, s.pool().const_int(1));
  s.add_field("before", s.b.scan(ScalarOp::max, x, 1, true));
  s.add_field("across", s.b.scan(ScalarOp::max, s.b.transpose(x), 0, true));
  s.add_field("zero", s.b.map(ScalarOp::sub, x, s.b.reduce(ScalarOp::add, x, 1)));
  s.add_field("row", s.b.map(ScalarOp::sub, s.b.transpose(x),
                             s.b.reduce(ScalarOp::max, s.b.transpose(x), 1)));
  compare(s);
}

TEST(Hazards, decode_adds_one_value_for_each_row) {
  Sample s;
  const auto twice = s.b.concat({s.g, s.g});
  s.add_field("pairs",
              s.b.reshape(twice, ir::matrix_type(kF32, s.pool().n(), s.pool().const_int(2)), true));
  auto decode = ir::make_function(ir::FunctionKind::Decode);
  ir::Builder b(s.program, decode);
  const auto sums = b.reduce(ScalarOp::add, b.field(0), 1);
  decode.results.output = b.reshape(sums, ir::vector_type(kF32, s.pool().n()));
  b.yield({});
  compare_decode(s, decode);
}

TEST(Hazards, decode_scatters_what_it_also_reads) {
  Sample s;
  const auto n = s.pool().n();
  const auto num = s.pool().min(n, s.pool().const_int(10));
  s.add_field("value", s.b.gather(s.g, s.b.random_index(num, n, {1, true})));
  auto decode = ir::make_function(ir::FunctionKind::Decode);
  ir::Builder b(s.program, decode);
  const auto zeros = b.fill(b.constant(kF32, 0), ir::vector_type(kF32, n));
  const auto out = b.scatter(zeros, b.random_index(num, n, {1, true}), b.field(0));
  b.check(b.map(ScalarOp::lt, b.reduce(ScalarOp::max, out), b.constant(kF32, 1e6)), "too large");
  decode.results.output = out;
  b.yield({});
  compare_decode(s, decode);
}

}  // namespace
}  // namespace cinch::codegen
