// Runs passes: verify, print, time, count.
#include <algorithm>
#include <chrono>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verifier.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/core/check.h"

namespace cinch::pipeline {
namespace {

bool is_named(const std::vector<std::string>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& each) { return each == name || each == "all"; });
}

// A fault inside a pass gets the pass's name and its input program.
void run_guarded(const Pass& pass, ir::Program& program, passes::PassContext& context) {
  try {
    pass.run(program, context);
  } catch (InternalError& error) {
    if (error.stage().empty()) error.attach(std::string(pass.name), ir::print(program));
    throw;
  }
  ir::verify(program, std::string(pass.name));
}

PassTime run_timed(const Pass& pass, ir::Program& program, passes::PassContext& context) {
  const std::int64_t before = context.num_rewrites();
  const auto start = std::chrono::steady_clock::now();
  run_guarded(pass, program, context);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return {std::string(pass.name), taken.count(), context.num_rewrites() - before};
}

}  // namespace

Report run(ir::Program& program, const Options& options) {
  std::vector<std::string> names = options.passes;
  if (names.empty()) names.assign(standard_order().begin(), standard_order().end());
  passes::PassContext context;
  if (options.pass_limit) context.set_limit(*options.pass_limit);
  context.set_evaluate(options.evaluate);
  ir::verify(program, "lower");
  Report report;
  for (const std::string& name : names) {
    const Pass* pass = find_pass(name);
    CINCH_CHECK(pass != nullptr, "no pass is named " + name);
    context.set_pass(name);
    report.times.push_back(run_timed(*pass, program, context));
    if (options.print && is_named(options.print_after, name)) {
      options.print("after " + name, ir::print(program));
    }
  }
  report.remarks = context.remarks();
  report.num_rewrites = context.num_rewrites();
  return report;
}

}  // namespace cinch::pipeline
