// The covering set: every size with normal data, every kind of data at one size, executions spread
// over them so that each architecture meets each thread count and a task split of its own.
#include "tests/programs/harness/matrix.h"

#include <fmt/format.h>

#include "runtime/core/check.h"
#include "tests/programs/harness/inputs.h"
#include "tests/programs/harness/oracle.h"

namespace cinch::testing {
namespace {

constexpr std::int64_t kSizes[] = {0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 5000};
constexpr std::int64_t kLongSize = 100003;
constexpr std::int64_t kDataSize = 1025;
constexpr std::pair<std::int64_t, std::int64_t> kShapes[] = {
    {0, 0}, {1, 1}, {1, 33}, {33, 1}, {3, 5}, {31, 32}, {64, 64}, {5, 700}, {700, 5}};

rt::SessionOptions options_for(const ProgramFile& program, const Case& one_case) {
  rt::SessionOptions options;
  options.rows = one_case.rows;
  options.cols = one_case.cols;
  options.world = program.world;
  options.worker = program.world > 1 ? 1 : 0;
  options.seed = 0x123456789abcdefull;
  options.tensor = 3;
  options.piece = 1;
  options.poison_memory = true;
  return options;
}

std::vector<std::vector<float>> gradients_for(const Case& one_case) {
  std::vector<std::vector<float>> gradients;
  for (std::uint64_t step = 0; step < one_case.steps; ++step) {
    // A non-finite value comes in the middle: states must survive it.
    const bool is_bad = one_case.data == DataKind::NaN || one_case.data == DataKind::Infinity;
    const DataKind kind = is_bad && step != 1 ? DataKind::Normal : one_case.data;
    gradients.push_back(make_gradient(kind, one_case.rows * one_case.cols, 17 * step + 5));
  }
  return gradients;
}

// Scalar states of a tensor without elements cannot be compared: a session runs nothing for n = 0.
void forget_states(StepResult& result) {
  result.states.clear();
}

std::string describe(const Case& one_case, const Execution& execution, std::uint64_t step,
                     const std::string& target) {
  return fmt::format("shape {}x{}, {} data, step {}, {}, {} threads, {} groups per task",
                     one_case.rows, one_case.cols, data_kind_name(one_case.data), step, target,
                     execution.threads, execution.groups_per_task);
}

std::string run_execution(const std::shared_ptr<const rt::LoadedProgram>& loaded,
                          rt::SessionOptions options, const Case& one_case,
                          const Execution& execution,
                          const std::vector<std::vector<float>>& gradients,
                          const std::vector<StepResult>& expected) {
  options.threads = execution.threads;
  options.groups_per_task = execution.groups_per_task;
  auto session = rt::Session::open(loaded, options);
  if (!session) return "open: " + session.error().message;
  for (std::uint64_t step = 0; step < gradients.size(); ++step) {
    StepResult result = run_step(*session, gradients[step], step);
    if (gradients[step].empty()) forget_states(result);
    const std::string difference = compare(expected[step], result);
    if (difference.empty()) continue;
    return describe(one_case, execution, step, loaded->image().target) + ": " + difference;
  }
  return {};
}

StepResult empty_tensor_result(const std::shared_ptr<const rt::LoadedProgram>& loaded,
                               const rt::SessionOptions& options, std::uint64_t step) {
  // The interpreter does not run: the payload of a tensor without elements is a header alone.
  auto session = rt::Session::open(loaded, options);
  StepResult result;
  if (!session) return result;
  CINCH_CHECK(give_inputs(*session), "giving inputs");
  const auto payload = session->encode(std::vector<float>(), step);
  if (payload && payload->size() == 64) result.payload.assign(payload->begin(), payload->end());
  return result;
}

}  // namespace

std::vector<Case> cases_for(const ProgramFile& program, bool is_matrix, bool is_long) {
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes = program.shapes;
  if (shapes.empty() && is_matrix) shapes.assign(std::begin(kShapes), std::end(kShapes));
  if (shapes.empty()) {
    for (std::int64_t n : kSizes) shapes.emplace_back(n, 1);
    if (is_long) shapes.emplace_back(kLongSize, 1);
  }
  const auto data_shape = program.shapes.empty() && !is_matrix
                              ? std::pair<std::int64_t, std::int64_t>(kDataSize, 1)
                              : shapes.back();
  std::vector<Case> cases;
  for (const auto& [rows, cols] : shapes) cases.push_back({rows, cols, DataKind::Normal, 2});
  for (DataKind kind : kAllDataKinds) {
    if (!is_long) {
      cases.push_back({data_shape.first, data_shape.second, kind, 3});
      continue;
    }
    for (const auto& [rows, cols] : shapes) cases.push_back({rows, cols, kind, 3});
  }
  return cases;
}

std::vector<Execution> executions_for(const Case& one_case, std::size_t num_archs, bool is_long) {
  std::vector<Execution> executions;
  const std::uint32_t threads[] = {1, 2, 4};
  const std::uint64_t splits[] = {0, 1, 3};
  const std::int64_t n = one_case.rows * one_case.cols;
  for (std::size_t arch = 0; arch < num_archs; ++arch) {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t split = is_long ? i : (i + arch) % 3;
      // Small tensors have one task: threads and splits make no difference there.
      const bool is_worth = is_long || i == 0 || n > 1024;
      if (is_worth) executions.push_back({arch, threads[i], splits[split]});
      if (is_long && n > 1024) executions.push_back({arch, threads[i], splits[(i + 1) % 3]});
    }
  }
  return executions;
}

std::string run_matrix(const ProgramFile& program, const Compiled& compiled,
                       const std::vector<std::shared_ptr<const rt::LoadedProgram>>& by_arch,
                       bool is_long) {
  for (const Case& one_case : cases_for(program, compiled.oracle.info.is_matrix, is_long)) {
    const rt::SessionOptions options = options_for(program, one_case);
    const auto gradients = gradients_for(one_case);
    Oracle oracle(compiled.oracle, by_arch[0]->image(), options);
    std::vector<StepResult> expected;
    for (std::uint64_t step = 0; step < gradients.size(); ++step) {
      expected.push_back(gradients[step].empty() ? empty_tensor_result(by_arch[0], options, step)
                                                 : oracle.step(gradients[step], step));
    }
    for (const Execution& execution : executions_for(one_case, by_arch.size(), is_long)) {
      std::string difference =
          run_execution(by_arch[execution.arch], options, one_case, execution, gradients, expected);
      if (!difference.empty()) return difference;
    }
  }
  return {};
}

}  // namespace cinch::testing
