// How a change of the gradient that causes no rounding affects the decoded values.
#include <fmt/format.h>

#include <cmath>

#include "compiler/verify/laws.h"
#include "compiler/verify/trace.h"

namespace cinch::verify {

namespace {

constexpr std::uint32_t kEquivarianceSteps = 3;

std::vector<float> times(std::vector<float> values, float factor) {
  for (float& x : values) x *= factor;
  return values;
}

// Compares values: -0 equals 0, and NaN equals nothing.
std::size_t num_different(std::span<const float> a, std::span<const float> b) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different += a[i] == b[i] ? 0 : 1;
  return different;
}

// Number of elements of the first step at which C(factor * x) differs from factor * C(x); with
// states, over several steps.
rt::Result<std::size_t> num_different_at(const Trial& trial, const Input& input, float factor,
                                         std::uint32_t& step) {
  auto plain = trial.subject.main->open(trial.request(input.shape));
  auto changed = trial.subject.main->open(trial.request(input.shape));
  CINCH_TRY(plain);
  CINCH_TRY(changed);
  for (step = 0; step < kEquivarianceSteps; ++step) {
    const std::vector<float> gradient = variant_of(input, step).values;
    const auto expected = round_trip_of(**plain, gradient, step);
    CINCH_TRY(expected);
    const auto found = round_trip_of(**changed, times(gradient, factor), step);
    CINCH_TRY(found);
    const std::size_t different = num_different(times(*expected, factor), *found);
    if (different > 0) return different;
  }
  return std::size_t{0};
}

Counterexample pair_of(const Trial& trial, const Input& input, float factor, std::uint32_t step) {
  std::vector<Input> steps;
  for (std::uint32_t i = 0; i <= step; ++i) {
    Input changed = variant_of(input, i);
    changed.values = times(changed.values, factor);
    steps.push_back(std::move(changed));
  }
  return shown_by(trial, std::move(steps),
                  fmt::format("the output is not {} times the output for the input{} divided by {}",
                              factor, step == 0 ? "" : "s", factor));
}

Finding equivariant(std::string law, const Trial& trial, std::span<const float> factors) {
  Finding& finding = trial.begin(std::move(law));
  const std::vector<Input> inputs = trial.inputs(edge_shapes(trial.subject.info().is_matrix));
  Sweep sweep(trial, inputs.size());
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    for (float factor : factors) {
      std::uint32_t step = 0;
      const auto different = num_different_at(trial, input, factor, step);
      if (!different) return failed_call(finding.law, trial, input, different.error());
      if (*different == 0) continue;
      finding.figure += 1;
      if (!finding.holds) continue;
      finding.holds = false;
      finding.detail = fmt::format("{}, times {}: {} of {} elements of step {} differ",
                                   describe(input), factor, *different, input.values.size(), step);
      finding.counterexample = pair_of(trial, input, factor, step);
    }
  }
  if (finding.holds) {
    finding.detail = fmt::format("differences, {} of {} steps", sweep.inputs(), kEquivarianceSteps);
  }
  finding.cut = sweep.cut();
  return finding;
}

}  // namespace

Finding scale_equivariant(const Trial& trial, const sema::Claim&) {
  constexpr float kPowers[] = {0x1p-4f, 2, 0x1p7f};
  return equivariant("scale_equivariant", trial, kPowers);
}

Finding sign_equivariant(const Trial& trial, const sema::Claim&) {
  constexpr float kOpposite[] = {-1};
  return equivariant("sign_equivariant", trial, kOpposite);
}

Finding idempotent(const Trial& trial, const sema::Claim&) {
  Finding& finding = trial.begin("idempotent");
  const std::vector<Input> inputs = trial.inputs(edge_shapes(trial.subject.info().is_matrix));
  Sweep sweep(trial, inputs.size());
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    const TensorRequest request = trial.request(input.shape);
    const auto once = round_trip_of(*trial.subject.main, request, input.values);
    if (!once) return failed_call(finding.law, trial, input, once.error());
    const auto twice = round_trip_of(*trial.subject.main, request, *once);
    if (!twice) return failed_call(finding.law, trial, input, twice.error());
    const std::size_t different = num_different(*once, *twice);
    if (different == 0) continue;
    finding.figure += 1;
    if (!finding.holds) continue;
    finding.holds = false;
    finding.detail = fmt::format("{}: {} of {} elements change when decoded values are compressed",
                                 describe(input), different, once->size());
    Input again = input;
    again.values = *once;
    finding.counterexample =
        shown_by(trial, {again}, "the input was decoded before, and relative_error is not 0");
  }
  if (finding.holds) finding.detail = "differences, " + sweep.inputs();
  finding.cut = sweep.cut();
  return finding;
}

}  // namespace cinch::verify
