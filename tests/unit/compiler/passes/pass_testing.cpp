#include "tests/unit/compiler/passes/pass_testing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/interp/interp.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"

namespace cinch::passes {
namespace {

std::vector<std::vector<float>> gradients(std::size_t n) {
  std::vector<float> waves(n), ties(n), sparse(n);
  for (std::size_t i = 0; i < n; ++i) {
    waves[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i)) * 40);
    ties[i] = static_cast<float>(static_cast<int>(i * 7 % 5) - 2) * (i % 3 == 0 ? -0.5f : 0.5f);
    sparse[i] = i % 11 == 3 ? 1e-40f * static_cast<float>(i) : (i % 2 ? -0.0f : 0.0f);
  }
  return {waves, ties, sparse};
}

}  // namespace

ir::Program finish_of(const std::string& ops) {
  rt::Result<ir::Program> program = ir::parse(
      "name=f\nparams {name=x, dtype=f32, default=0.25}\nhas_finish\n"
      "counts {name=m, bound=n}\ntable 0: [f32; 4] = (3, 1, 2, 0.5)\nfinish {\n%0: [f32; n] = "
      "gradient\n%1: "
      "f32 = const_scalar {value=1.5}\n"
      "%2: [u32; n] = iota\n%3: bool = const_scalar {value=1}\n%4: f32 = param {index=0}\n" +
      ops + "\nyield\nresults output(%9)\n}\n");
  if (!program) throw std::runtime_error(program.error().message);
  return std::move(*program);
}

PassContext context_with_interpreter() {
  PassContext context;
  context.set_evaluate(
      [](const ir::Program& program,
         const ir::Function& function) -> std::optional<std::vector<std::uint64_t>> {
        const auto array = interp::evaluate_constant(program, function);
        if (!array) return std::nullopt;
        return array->bits;
      });
  return context;
}

std::string after(ir::Program& program, const std::vector<PassFunction>& passes) {
  PassContext context = context_with_interpreter();
  ir::verify(program, "input");
  for (PassFunction pass : passes) {
    pass(program, context);
    ir::verify(program, "pass");
  }
  return ir::print(program, *program.find(ir::FunctionKind::Finish));
}

void expect_same_meaning(const ir::Program& program, const std::vector<PassFunction>& passes) {
  ir::Program changed = program;
  const std::string text = after(changed, passes);
  for (std::size_t n : {0, 1, 2, 33, 1025}) {
    for (const std::vector<float>& g : gradients(n)) {
      const auto inputs = interp::inputs_for(g);
      const auto was = interp::run(program, ir::FunctionKind::Finish, inputs);
      const auto is = interp::run(changed, ir::FunctionKind::Finish, inputs);
      ASSERT_EQ(was.has_value(), is.has_value()) << n << "\n" << text;
      if (!was) {
        EXPECT_EQ(was.error().message, is.error().message) << n;
        continue;
      }
      ASSERT_EQ(was->output, is->output) << n << "\n" << text;
    }
  }
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace cinch::passes
