// The error of decoded gradients. Variance and contraction are claims about the mean over seeds of
// the squared distance, relative to the gradient; an absolute error is a claim about every seed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/verify/laws.h"
#include "compiler/verify/samples.h"

namespace cinch::verify {

namespace {

constexpr std::size_t kErrorSamples = 500;
// The most that rounding of f32 adds.
constexpr double kRounding = 1e-5;
constexpr double kRoundingOfOne = 1e-6;

struct Measured {
  Moments ratios;       // squared distance over squared norm
  double largest = 0;   // the largest ratio
  double farthest = 0;  // the largest distance
};

rt::Result<Measured> measure(const Trial& trial, const Input& input, Clock::time_point until,
                             std::size_t wanted) {
  Measured measured;
  const double norm = norm_squared(input.values);
  const auto taken =
      sample_seeds(trial, input, wanted, until, [&](const std::vector<float>& decoded) {
        const double distance = distance_squared(input.values, decoded);
        // Zeros must decode to zeros: otherwise nothing bounds the error relative to them.
        const double ratio = norm > 0 ? distance / norm : distance > 0 ? HUGE_VAL : 0;
        measured.ratios.add(ratio);
        measured.largest = std::max(measured.largest, ratio);
        // NaN counts as infinitely far.
        const double far = std::isnan(distance) ? HUGE_VAL : std::sqrt(distance);
        measured.farthest = std::max(measured.farthest, far);
      });
  CINCH_TRY(taken);
  return measured;
}

// Is the mean above the bound by more than chance and rounding?
bool is_above(const Measured& measured, double bound) {
  const double granted = bound + kRounding * std::abs(bound) + kRoundingOfOne;
  if (measured.ratios.mean() <= granted) return false;
  if (!std::isfinite(measured.ratios.mean())) return true;
  return measured.ratios.count() == 1 ||
         standard_errors(measured.ratios, granted, std::max(measured.largest, 1.0)) >
             kStandardErrors;
}

Finding relative_error(std::string law, const Trial& trial, const sema::Claim& claim,
                       const std::function<double(double)>& bound_of) {
  Finding& finding = trial.begin(std::move(law));
  const std::vector<Input> inputs = trial.usual_inputs();
  const std::size_t wanted = draws_random_numbers(*trial.subject.ir) ? kErrorSamples : 1;
  std::size_t fewest = wanted;
  double worst = -HUGE_VAL;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    const auto claimed = trial.claimed(claim.numbers[0], input.shape);
    if (!claimed) return failed_call(finding.law, trial, input, claimed.error());
    const double bound = bound_of(*claimed);
    const auto measured = measure(trial, input, share_of_time(trial, i, inputs.size()), wanted);
    if (!measured) return failed_call(finding.law, trial, input, measured.error());
    fewest = std::min(fewest, measured->ratios.count());
    const bool fails = is_above(*measured, bound);
    // Keeps the first that fails, else the one closest to its bound.
    const double excess = measured->ratios.mean() - bound;
    if (!finding.holds || (!fails && excess <= worst)) continue;
    worst = excess;
    finding.figure = measured->ratios.mean();
    finding.bound = bound;
    finding.detail =
        fmt::format("|x - C(x)|^2 / |x|^2, the nearest to `{}`: {}", claim.text, describe(input));
    if (!fails) continue;
    finding.holds = false;
    finding.counterexample =
        shown_by(trial, {input},
                 fmt::format("the square of relative_error{} is {:.6g}, above {:.6g}",
                             measured->ratios.count() > 1 ? ", in the mean over seeds," : "",
                             finding.figure, bound));
  }
  if (finding.holds && finding.figure > finding.bound) {
    finding.detail += wanted > 1 ? ", within chance" : ", within rounding";
  }
  if (fewest < wanted) finding.cut = fmt::format("{} of {} seeds", fewest, wanted);
  return finding;
}

}  // namespace

Finding variance(const Trial& trial, const sema::Claim& claim) {
  return relative_error("variance", trial, claim, [](double omega) { return omega; });
}

Finding contraction(const Trial& trial, const sema::Claim& claim) {
  return relative_error("contraction", trial, claim, [](double delta) { return 1 - delta; });
}

Finding absolute_error(const Trial& trial, const sema::Claim& claim) {
  Finding& finding = trial.begin("absolute_error");
  const std::vector<Input> inputs = trial.usual_inputs();
  const std::size_t wanted = draws_random_numbers(*trial.subject.ir) ? kErrorSamples : 1;
  std::size_t fewest = wanted;
  double worst = -HUGE_VAL;
  for (std::size_t i = 0; i < inputs.size() && finding.holds; ++i) {
    const Input& input = inputs[i];
    const auto bound = trial.claimed(claim.numbers[0], input.shape);
    if (!bound) return failed_call(finding.law, trial, input, bound.error());
    const auto measured = measure(trial, input, share_of_time(trial, i, inputs.size()), wanted);
    if (!measured) return failed_call(finding.law, trial, input, measured.error());
    fewest = std::min(fewest, measured->ratios.count());
    if (measured->farthest - *bound <= worst) continue;
    worst = measured->farthest - *bound;
    finding.figure = measured->farthest;
    finding.bound = *bound;
    finding.detail =
        fmt::format("|x - C(x)|, the nearest to `{}`: {}", claim.text, describe(input));
    const double granted =
        *bound + kRounding * std::max(*bound, std::sqrt(norm_squared(input.values)));
    if (measured->farthest <= granted) continue;
    finding.holds = false;
    finding.counterexample =
        shown_by(trial, {input},
                 fmt::format("relative_error times the input's norm is {:.6g}, above {:.6g}",
                             finding.figure, *bound));
  }
  if (fewest < wanted) finding.cut = fmt::format("{} of {} seeds", fewest, wanted);
  return finding;
}

}  // namespace cinch::verify
