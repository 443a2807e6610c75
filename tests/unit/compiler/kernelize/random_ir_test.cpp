// Random IR programs through kernelize on the CPU against the interpreter: payloads, decoded
// tensors and states bit for bit, failures where the interpreter fails.
//   CINCH_LONG=1 runs many seeds instead of the few of every day, CINCH_SEEDS=N runs N of them;
//   CINCH_SEED=S begins at (and prints) S.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "codegen/jit/compile_program.h"
#include "codegen/kir/text/text.h"
#include "codegen/kir/verifier.h"
#include "compiler/interp/interp.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/kernelize/kernelize.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/call/parameters.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/core/check.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"
#include "runtime/session/session.h"
#include "tests/environment.h"
#include "tests/unit/compiler/kernelize/random_function.h"

namespace cinch::codegen {
namespace {

struct Shape {
  std::int64_t rows, cols;
};

std::vector<float> gradient_of(Shape shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> g(static_cast<std::size_t>(shape.rows * shape.cols));
  for (auto& x : g) {
    const auto word = random();
    x = static_cast<float>(static_cast<int>(word % 65) - 32) / 8;  // ties are common
    if (word % 97 == 0) x = -0.0F;
    if (word % 89 == 0) x *= 1e20F;
    if (word % 83 == 0) x *= 1e-40F;
  }
  return g;
}

void optimize(ir::Program& program) {
  pipeline::Options options;
  options.evaluate = [](const ir::Program& p, const ir::Function& f) {
    const auto array = interp::evaluate_constant(p, f);
    return array ? std::optional(array->bits) : std::nullopt;
  };
  pipeline::run(program, options);
}

// One program under test; everything that goes wrong is an ADD_FAILURE with the program.
class Trial {
 public:
  explicit Trial(std::uint32_t seed) : seed_(seed) {}

  void run(IrCoverage& coverage) {
    const bool needs_passes = seed_ % 3 == 2;
    try {
      program_ = random_ir({seed_, needs_passes});
    } catch (const InternalError& error) {
      return fail(std::string("generator: ") + error.what());
    }
    if (const auto fault = ir::find_fault(program_)) return fail("not well typed: " + *fault);
    add_coverage(program_, coverage);
    compiled_ = program_;
    try {
      if (needs_passes || seed_ % 3 == 1) optimize(compiled_);
      kernels_ = kernelize(compiled_);
      kir::verify(kernels_, "kernelize");
    } catch (const InternalError& error) {
      return fail(error.what());
    }
    const auto image = make_image(kernels_, {TargetKind::Cpu, arch()});
    if (!image) return fail(image.error().message);
    static constexpr Shape kVectors[] = {{1, 1}, {2, 1}, {33, 1}, {1024, 1}, {1025, 1}, {5003, 1}};
    static constexpr Shape kMatrices[] = {{1, 1}, {3, 1}, {1, 40}, {33, 7}, {7, 1030}};
    const auto shapes = program_.info.is_matrix ? std::span<const Shape>(kMatrices)
                                                : std::span<const Shape>(kVectors);
    for (const auto shape : shapes) {
      if (!failed_) compare(*image, shape);
    }
  }

 private:
  const char* arch() const {
    if (seed_ % 4 == 0) return "x86-64";
    return __builtin_cpu_supports("avx512bw") ? "x86-64-v4" : "x86-64";
  }

  void fail(const std::string& what) {
    failed_ = true;
    std::string text;
    if (std::getenv("CINCH_SEED") != nullptr) text = ir::print(compiled_) + kir::print(kernels_);
    ADD_FAILURE() << "seed " << seed_ << ": " << what << "\n" << text;
  }

  void compare(const rt::ProgramImage& image, Shape shape) {
    auto session = rt::Session::open(image, {.rows = shape.rows,
                                             .cols = shape.cols,
                                             .threads = 2,
                                             .groups_per_task = 8,
                                             .poison_memory = true});
    const auto where = fmt::format("{}x{} ", shape.rows, shape.cols);
    if (!session) return fail(where + session.error().message);
    interp::Inputs inputs;
    inputs.rows = shape.rows;
    inputs.cols = shape.cols;
    inputs.gradient = gradient_of(shape, seed_);
    auto states = interp::initial_states(program_, inputs);
    if (!states) return;  // a size is negative here
    inputs.states = *states;
    check_states(*session, inputs.states, where + "initial");
    for (std::uint64_t step = 0; step < 3 && !failed_; ++step) {
      inputs.gradient = gradient_of(shape, seed_ + static_cast<unsigned>(step));
      if (step == 2 && !inputs.gradient.empty()) {
        inputs.gradient[inputs.gradient.size() / 2] = std::numeric_limits<float>::quiet_NaN();
      }
      inputs.draw.step = step;
      if (!step_through(*session, inputs, fmt::format("{}step {}", where, step))) return;
    }
  }

  // False: this size ends here.
  bool step_through(rt::Session& session, interp::Inputs& inputs, const std::string& where) {
    const auto expected = interp::run(program_, ir::FunctionKind::Encode, inputs);
    const auto payload = session.encode(rt::ConstTensorView(inputs.gradient), inputs.draw.step);
    if (!expected) {
      // A result without a check has no meaning; a failed check must fail here, too.
      if (expected.error().kind == rt::ErrorKind::CheckFailed && payload)
        fail(where + " should fail: " + expected.error().message);
      return false;
    }
    if (!payload) {
      fail(where + " " + payload.error().message);
      return false;
    }
    const auto wanted = assemble(inputs, *expected);
    if (!std::equal(payload->begin(), payload->end(), wanted.begin(), wanted.end()))
      fail(where + ": payloads differ" + first_difference(*payload, wanted));
    inputs.states = expected->states;
    check_states(session, inputs.states, where);
    if (!failed_) decode(session, inputs, *expected, where);
    return !failed_;
  }

  std::vector<std::uint8_t> assemble(const interp::Inputs& inputs, const interp::Outputs& out) {
    rt::EncodedFields encoded;
    encoded.non_finite = out.non_finite;
    encoded.counts.assign(out.counts.begin(), out.counts.end());
    std::vector<std::vector<std::uint8_t>> fields;
    for (const auto& f : out.fields) fields.push_back(rt::pack_elements(f.dtype, f.bits));
    encoded.fields.assign(fields.begin(), fields.end());
    const rt::ParameterValues parameters(program_.info);
    rt::PayloadContext context;
    context.info = &program_.info;
    context.fingerprint = rt::fingerprint(compiled_.info);
    context.env.n = inputs.rows * inputs.cols;
    context.env.rows = inputs.rows;
    context.env.cols = inputs.cols;
    context.env.step = static_cast<std::int64_t>(inputs.draw.step);
    context.env.params = parameters.host_values();
    context.decode_hash =
        rt::decode_hash(program_.info, {parameters.given_words(), 1, 0, inputs.draw.step});
    auto payload = rt::assemble_payload(context, encoded);
    if (!payload) {
      fail(payload.error().message);
      return {};
    }
    return *payload;
  }

  static std::string first_difference(std::span<const std::uint8_t> found,
                                      const std::vector<std::uint8_t>& wanted) {
    if (found.size() != wanted.size())
      return fmt::format(" ({} bytes, not {})", found.size(), wanted.size());
    std::size_t i = 0;
    while (found[i] == wanted[i]) ++i;
    return fmt::format(" (at byte {} of {}: {}, not {})", i, found.size(), found[i], wanted[i]);
  }

  void check_states(const rt::Session& session, const std::vector<interp::Array>& states,
                    const std::string& where) {
    for (std::uint32_t i = 0; i < states.size(); ++i) {
      const auto bytes = rt::pack_elements(states[i].dtype, states[i].bits);
      const auto found = session.state(i).value();
      if (!std::equal(bytes.begin(), bytes.end(), found.begin(), found.end()))
        return fail(
            fmt::format("{}: state {} differs{}", where, i, first_difference(found, bytes)));
    }
  }

  void decode(rt::Session& session, interp::Inputs inputs, const interp::Outputs& encoded,
              const std::string& where) {
    const auto payload = assemble(inputs, encoded);
    inputs.fields = encoded.fields;
    inputs.counts = encoded.counts;
    inputs.is_non_finite = encoded.non_finite;
    const auto expected = interp::run(program_, ir::FunctionKind::Decode, inputs);
    std::vector<float> out(inputs.gradient.size(), 7);
    const auto status = session.decode(payload, rt::TensorView(out), inputs.draw.step);
    if (!expected) {
      if (expected.error().kind == rt::ErrorKind::CheckFailed && status)
        fail(where + " decode should fail");
      return;
    }
    if (!status) return fail(where + " decode: " + status.error().message);
    const auto wanted = interp::to_floats(*expected->output);
    check_output(out, wanted, where + " decode");
    std::vector<float> sum(out.size()), expected_sum(out.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = static_cast<float>(i % 5) - 2;
      expected_sum[i] = sum[i] + wanted[i];
    }
    const auto added = session.decode_add(payload, sum, inputs.draw.step);
    if (!added) return fail(where + " decode_add: " + added.error().message);
    check_output(sum, expected_sum, where + " decode_add");
  }

  void check_output(const std::vector<float>& found, const std::vector<float>& wanted,
                    const std::string& where) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool are_nan = std::isnan(found[i]) && std::isnan(wanted[i]);
      if (!are_nan &&
          std::bit_cast<std::uint32_t>(found[i]) != std::bit_cast<std::uint32_t>(wanted[i]))
        return fail(fmt::format("{}: [{}] is {}, not {}", where, i, found[i], wanted[i]));
    }
  }

  std::uint32_t seed_;
  bool failed_ = false;
  ir::Program program_, compiled_;
  kir::KernelProgram kernels_;
};

TEST(RandomIr, kernels_agree_with_the_interpreter) {
  const auto first = number_from("CINCH_SEED", 1);
  const auto num = number_from("CINCH_SEEDS", is_long_run() ? 1000 : is_sample_run() ? 4 : 15);
  ASSERT_GT(num, 0u);
  IrCoverage coverage;
  for (auto seed = first; seed < first + num; ++seed) {
    Trial(static_cast<std::uint32_t>(seed)).run(coverage);
  }
  std::string text;
  for (const auto& [name, times] : coverage) text += fmt::format("{} {}, ", name, times);
  std::puts(text.c_str());
}

}  // namespace
}  // namespace cinch::codegen
