// What kernelize makes, run on the CPU, against the interpreter: payloads and states bit for bit.
#include <cmath>
#include <random>

#include "codegen/jit/compile_program.h"
#include "compiler/interp/interp.h"
#include "runtime/image/fingerprint.h"
#include "runtime/payload/payload.h"
#include "runtime/session/parameters.h"
#include "runtime/session/payload_assembly.h"
#include "runtime/session/session.h"
#include "tests/unit/codegen/kernelize/sample.h"

namespace cinch::codegen {
namespace {

std::vector<float> gradient_of(std::int64_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<float> normal;
  std::vector<float> g(static_cast<std::size_t>(n));
  for (auto& x : g) x = std::ldexp(std::round(normal(random) * 8), -3);  // ties are common
  return g;
}

struct Expected {
  std::vector<std::uint8_t> payload;
  std::vector<interp::Array> states;
};

Expected interpret(const ir::Program& program, const std::vector<float>& g,
                   std::vector<interp::Array> states, std::uint64_t step) {
  auto inputs = interp::inputs_for(g);
  inputs.states = std::move(states);
  inputs.draw.step = step;
  const auto out = interp::run(program, ir::FunctionKind::Encode, inputs);
  EXPECT_TRUE(out) << out.error().message;
  rt::EncodedFields encoded;
  encoded.non_finite = out->non_finite;
  encoded.counts.assign(out->counts.begin(), out->counts.end());
  std::vector<std::vector<std::uint8_t>> fields;
  for (const auto& f : out->fields) fields.push_back(rt::pack_elements(f.dtype, f.bits));
  encoded.fields.assign(fields.begin(), fields.end());
  const rt::ParameterValues parameters(program.info);
  rt::PayloadContext context;
  context.info = &program.info;
  context.fingerprint = rt::fingerprint(program.info);
  context.env.n = context.env.rows = static_cast<std::int64_t>(g.size());
  context.env.step = static_cast<std::int64_t>(step);
  context.env.params = parameters.host_values();
  context.decode_hash = rt::decode_hash(program.info, {parameters.kernel_words(), 1, 0, step});
  auto payload = rt::assemble_payload(context, encoded);
  EXPECT_TRUE(payload) << payload.error().message;
  return {std::move(*payload), out->states};
}

// Two steps at every edge size, on each level of vectors that the machine has.
void compare(Sample& s) {
  const auto kernels = s.kernels();
  for (const auto* arch : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
    if (std::string(arch) == "x86-64-v4" && !__builtin_cpu_supports("avx512bw")) continue;
    if (std::string(arch) == "x86-64-v3" && !__builtin_cpu_supports("avx2")) continue;
    const auto image = make_image(kernels, {TargetKind::Cpu, arch});
    ASSERT_TRUE(image) << image.error().message;
    for (const std::int64_t n : {1, 2, 31, 32, 33, 1023, 1024, 1025, 5000, 70001}) {
      const auto g = gradient_of(n);
      auto session = rt::Session::open(
          *image, {.rows = n, .threads = 2, .groups_per_task = 8, .poison_memory = true});
      ASSERT_TRUE(session) << session.error().message;
      auto inputs = interp::inputs_for(g);
      auto states = *interp::initial_states(s.program, inputs);
      for (std::uint64_t step = 0; step < 2; ++step) {
        const auto expected = interpret(s.program, g, states, step);
        const auto payload = session->encode(rt::ConstTensorView(g), step);
        ASSERT_TRUE(payload) << payload.error().message;
        ASSERT_TRUE(std::equal(payload->begin(), payload->end(), expected.payload.begin(),
                               expected.payload.end()))
            << arch << " n=" << n << " step=" << step << "\n"
            << kir::print(kernels);
        states = expected.states;
        for (std::uint32_t i = 0; i < states.size(); ++i) {
          const auto bytes = rt::pack_elements(states[i].dtype, states[i].bits);
          ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), session->state(i).begin(),
                                 session->state(i).end()))
              << arch << " state " << i << " n=" << n << " step=" << step << "\n"
              << kir::print(kernels);
        }
      }
    }
  }
}

void add_zero_state(Sample& s, const std::string& name) {
  s.add_state(name);
  auto init = ir::make_function(ir::FunctionKind::Encode);
  ir::Builder b(s.program, init);
  init.results.output = b.fill(b.constant(kF32, 0), {kF32, 1, {s.pool().n(), {}}});
  b.yield({});
  s.program.state_inits.push_back(init);
}

ir::Builder::Nonzero select(Sample& s, ValueId mask, HostExprId bound, HostExprId limit = {}) {
  s.program.info.wire.counts.push_back({"m", bound});
  s.program.info.counts.push_back({"m", bound});
  const auto selected = s.b.nonzero(mask, s.b.new_count("selected", bound), limit);
  s.encode.results.counts.push_back(selected.count);
  return selected;
}

// A field whose length is a selection's: the wire has its own count.
void add_counted_field(Sample& s, const std::string& name, ValueId v, HostExprId bound) {
  s.add_field(name, v);
  s.program.info.wire.fields.back().type.dims[0] = s.pool().count(0, bound);
}

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
