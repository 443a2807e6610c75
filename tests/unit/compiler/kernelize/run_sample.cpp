// See sample.h.
#include "tests/unit/compiler/kernelize/sample.h"

#include <cmath>
#include <random>

#include "codegen/jit/compile_program.h"
#include "compiler/interp/interp.h"
#include "runtime/call/parameters.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/image/image.h"
#include "runtime/module/cpu_module.h"
#include "runtime/payload/payload.h"
#include "runtime/session/session.h"
#include "tests/environment.h"

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
  context.decode_hash = rt::decode_hash(program.info, {parameters.given_words(), 1, 0, step});
  auto payload = rt::assemble_payload(context, encoded);
  EXPECT_TRUE(payload) << payload.error().message;
  return {std::move(*payload), out->states};
}

}  // namespace

// Two steps at every edge size, on the lowest and the highest level of vectors that the machine has
// (in a sample run the highest, in a long one all).
void compare(Sample& s) {
  const auto kernels = s.kernels();
  for (const auto* arch : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
    const bool is_lowest = std::string_view(arch) == "x86-64";
    const bool is_taken =
        is_long_run() || arch == rt::host_cpu_arch() || (is_lowest && !is_sample_run());
    if (!rt::host_supports(arch) || !is_taken) continue;
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
          ASSERT_TRUE(std::ranges::equal(bytes, session->state(i).value()))
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

ir::Builder::Nonzero select(Sample& s, ValueId mask, HostExprId bound, HostExprId limit) {
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

void compare_decode(Sample& s, ir::Function decode) {
  s.program.functions.push_back(std::move(decode));
  const auto kernels = s.kernels();
  const auto image = make_image(kernels, {TargetKind::Cpu, "x86-64"});
  ASSERT_TRUE(image) << image.error().message;
  for (const std::int64_t n : {1, 2, 33, 1025, 5000}) {
    auto session = rt::Session::open(
        *image, {.rows = n, .threads = 2, .groups_per_task = 8, .poison_memory = true});
    ASSERT_TRUE(session) << session.error().message;
    auto inputs = interp::inputs_for(gradient_of(n));
    const auto encoded = interp::run(s.program, ir::FunctionKind::Encode, inputs);
    ASSERT_TRUE(encoded) << encoded.error().message;
    inputs.fields = encoded->fields;
    inputs.counts = encoded->counts;
    const auto decoded = interp::run(s.program, ir::FunctionKind::Decode, inputs);
    ASSERT_TRUE(decoded) << decoded.error().message;
    const auto expected = interp::to_floats(*decoded->output);
    const auto view = session->encode(rt::ConstTensorView(inputs.gradient), 0);
    ASSERT_TRUE(view) << view.error().message;
    const std::vector<std::uint8_t> payload(view->begin(), view->end());
    std::vector<float> out(expected.size()), sum(expected.size(), 3);
    ASSERT_TRUE(session->decode(payload, rt::TensorView(out), 0));
    EXPECT_EQ(out, expected) << "n=" << n << "\n" << kir::print(kernels);
    ASSERT_TRUE(session->decode_add(payload, sum, 0));
    for (auto& x : out) x += 3;
    EXPECT_EQ(sum, out) << "n=" << n << "\n" << kir::print(kernels);
  }
}

}  // namespace cinch::codegen
