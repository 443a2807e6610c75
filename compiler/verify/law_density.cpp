// Estimators of thresholds: the share of elements that they keep of ordinary gradients, in the mean
// over steps, lies in the claimed range.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/verify/laws.h"
#include "compiler/verify/samples.h"
#include "compiler/verify/trace.h"

namespace cinch::verify {

namespace {

constexpr std::uint32_t kDensitySteps = 40;
// Controllers have settled after this many steps.
constexpr std::uint32_t kFirstCounted = 20;
constexpr std::uint32_t kDensityGradients = 4;  // used in turn

std::vector<Input> ordinary_inputs(const Trial& trial) {
  const std::vector<Shape> shapes = trial.subject.info().is_matrix
                                        ? std::vector<Shape>{{100, 100}, {300, 100}}
                                        : std::vector<Shape>{{10000}, {100000}};
  std::vector<Input> inputs = trial.inputs(shapes);
  std::erase_if(inputs, [](const Input& input) { return !input.is_ordinary; });
  return inputs;
}

rt::Result<double> density_of(const Trial& trial, const std::vector<Input>& gradients) {
  auto tensor = trial.subject.main->open(trial.request(gradients[0].shape));
  CINCH_TRY(tensor);
  Moments shares;
  for (std::uint32_t step = 0; step < kDensitySteps; ++step) {
    const auto decoded = round_trip_of(**tensor, gradients[step % kDensityGradients].values, step);
    CINCH_TRY(decoded);
    if (step < kFirstCounted) continue;
    const auto kept = std::ranges::count_if(*decoded, [](float x) { return x != 0; });
    shares.add(static_cast<double>(kept) / static_cast<double>(decoded->size()));
  }
  return shares.mean();
}

}  // namespace

Finding density(const Trial& trial, const sema::Claim& claim) {
  Finding& finding = trial.begin("density");
  const std::vector<Input> inputs = ordinary_inputs(trial);
  Sweep sweep(trial, inputs.size());
  double worst = -HUGE_VAL;
  while (sweep.goes_on() && finding.holds) {
    const Input& input = inputs[sweep.done() - 1];
    const auto least = trial.claimed(claim.numbers[0], input.shape);
    if (!least) return failed_call(finding.law, trial, input, least.error());
    const auto most = trial.claimed(claim.numbers[1], input.shape);
    if (!most) return failed_call(finding.law, trial, input, most.error());
    const std::vector<Input> gradients = variants_of(input, kDensityGradients);
    const auto found = density_of(trial, gradients);
    if (!found) return failed_call(finding.law, trial, input, found.error());
    // The nearer bound, or the one that is exceeded.
    const double excess = std::max(*found - *most, *least - *found);
    if (excess <= worst) continue;
    worst = excess;
    const bool is_above = *found - *most >= *least - *found;
    finding.figure = *found;
    finding.bound = is_above ? *most : *least;
    finding.detail = fmt::format("the share kept, at {} {:.4g}, the nearest: {}",
                                 is_above ? "most" : "least", finding.bound, describe(input));
    if (excess <= 1e-6) continue;
    finding.holds = false;
    finding.counterexample = shown_by(
        trial, gradients,
        fmt::format("the share of the output that is not 0 is not within {:.4g} and {:.4g}", *least,
                    *most));
    for (std::uint32_t step = 0; step < kDensitySteps; ++step) {
      finding.counterexample->order.push_back(step % kDensityGradients);
    }
  }
  finding.cut = finding.holds ? sweep.cut() : "";
  return finding;
}

}  // namespace cinch::verify
