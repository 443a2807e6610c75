// Claims about the mean over seeds: unbiased estimators, the error of decoded gradients, and the
// share of elements that estimators of thresholds keep.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/verify/laws.h"
#include "runtime/core/lang.h"
#include "runtime/core/mapped.h"

namespace cinch::verify {
namespace {

constexpr std::size_t kMeanSamples = 2000;
constexpr std::size_t kDirections = 4;

// Signs with which elements are summed: all the same, the gradient's own (in which shrinking adds
// up), and random.
std::vector<std::vector<float>> directions_of(const Input& input) {
  std::vector<std::vector<float>> directions(kDirections, input.values);
  for (std::size_t d = 0; d < kDirections; ++d) {
    const std::uint32_t words[lang::kDrawWords] = {1, static_cast<std::uint32_t>(d)};
    const lang::DrawStream stream = lang::draw_stream(words, 0, false);
    for (std::uint32_t i = 0; i < input.values.size(); ++i) {
      const bool is_negative =
          d == 1 ? input.values[i] < 0 : d > 1 && (lang::random_bits(stream, i) & 1) != 0;
      directions[d][i] = is_negative ? -1.0f : 1.0f;
    }
  }
  return directions;
}

class MeanOf {
 public:
  explicit MeanOf(const Input& input)
      : input_(input), directions_(directions_of(input)), elements_(input.values.size()) {
    auto magnitudes = mapped<float>(input.values, [&](float value) { return std::abs(value); });
    std::ranges::sort(magnitudes);
    if (magnitudes.empty()) return;
    median_ = magnitudes[magnitudes.size() / 2];
    greatest_ = magnitudes.back();
  }

  void add(const std::vector<float>& decoded) {
    double sums[kDirections] = {};
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      const double error = static_cast<double>(decoded[i]) - input_.values[i];
      elements_[i].add(error);
      const double magnitude = std::abs(static_cast<double>(decoded[i]));
      largest_ = std::max(largest_, magnitude);
      const double was = std::abs(static_cast<double>(input_.values[i]));
      if (was > 0 && was >= median_) growth_ = std::max(growth_, magnitude / was);
      for (std::size_t d = 0; d < kDirections; ++d) sums[d] += directions_[d][i] * error;
    }
    for (std::size_t d = 0; d < kDirections; ++d) sums_[d].add(sums[d]);
  }

  // The largest deviation in standard errors; for elements, minus what the maximum of that many
  // random values adds.
  double standard_errors() const {
    const auto n = static_cast<double>(std::max<std::size_t>(elements_.size(), 1));
    const double granted = std::sqrt(kStandardErrors * kStandardErrors + 2 * std::log(n));
    double worst = 0;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const double most = most_of(std::abs(static_cast<double>(input_.values[i])));
      const double found = std::abs(verify::standard_errors(elements_[i], 0, most));
      worst = std::max(worst, found * kStandardErrors / granted);
    }
    for (const Moments& sum : sums_) {
      const double found = verify::standard_errors(sum, 0, most_of(greatest_));
      worst = std::max(worst, std::abs(found));
    }
    return worst;
  }

 private:
  // The most that an element of this magnitude may decode to: an outlier that no seed has kept yet
  // may grow as others did.
  double most_of(double magnitude) const { return std::max(largest_, growth_ * magnitude); }

  const Input& input_;
  std::vector<std::vector<float>> directions_;
  std::vector<Moments> elements_;
  Moments sums_[kDirections];
  double largest_ = 0;
  double median_ = 0, greatest_ = 0;  // of the input's magnitudes
  // Growth of elements not smaller than the median: rounding up of small ones tells nothing about
  // large ones.
  double growth_ = 0;
};

}  // namespace

Finding unbiased(const Trial& trial, const sema::Claim&) {
  Finding& finding = trial.begin("unbiased");
  finding.bound = kStandardErrors;
  const std::vector<Input> inputs = trial.usual_inputs();
  // A program without draws decodes to the same values for every seed.
  const bool is_random = draws_random_numbers(*trial.subject.ir);
  const std::size_t wanted = is_random ? kMeanSamples : 1;
  std::size_t fewest = wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    MeanOf mean(input);
    const auto taken =
        TRY_ON(trial, input,
               sample_seeds(trial, input, wanted, share_of_time(trial, i, inputs.size()),
                            [&](const std::vector<float>& decoded) {
                              for (std::size_t j = is_random ? 1 : kMeanSamples; j > 0; --j) {
                                mean.add(decoded);
                              }
                            }));
    fewest = std::min(fewest, taken);
    const double found = mean.standard_errors();
    if (found < finding.figure && !finding.detail.empty()) continue;
    finding.figure = found;
    finding.detail = "standard errors of the mean, at most: " + describe(input);
    if (found <= kStandardErrors) continue;
    finding.holds = false;
    finding.counterexample = shown_by(
        trial, {input},
        is_random ? fmt::format("the mean of the outputs over --seed {} to {} is not the input",
                                trial.seed, trial.seed + taken - 1)
                  : "the output, the same for every seed, is not the input");
  }
  if (fewest < wanted) finding.cut = fmt::format("{} of {} seeds", fewest, wanted);
  return finding;
}

// The error of decoded gradients. Variance and contraction are claims about the mean over seeds of
// the squared distance, relative to the gradient; an absolute error is a claim about every seed.

namespace {

constexpr std::size_t kErrorSamples = 500;
// The most that one rounding of f32 adds.
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

}  // namespace

Finding relative_error(const Trial& trial, const sema::Claim& claim) {
  Finding& finding = trial.begin(std::string(sema::claim_info(claim.kind).name));
  const std::vector<Input> inputs = trial.usual_inputs();
  const std::size_t wanted = draws_random_numbers(*trial.subject.ir) ? kErrorSamples : 1;
  std::size_t fewest = wanted;
  double worst = -HUGE_VAL;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    const auto claimed = TRY_ON(trial, input, trial.claimed(claim.numbers[0], input.shape));
    const double bound = claim.kind == sema::ClaimKind::Contraction ? 1 - claimed : claimed;
    const auto measured =
        TRY_ON(trial, input, measure(trial, input, share_of_time(trial, i, inputs.size()), wanted));
    fewest = std::min(fewest, measured.ratios.count());
    const bool fails = is_above(measured, bound);
    // Keeps the first that fails, else the one closest to its bound.
    const double excess = measured.ratios.mean() - bound;
    if (!finding.holds || (!fails && excess <= worst)) continue;
    worst = excess;
    finding.figure = measured.ratios.mean();
    finding.bound = bound;
    finding.detail =
        fmt::format("|x - C(x)|^2 / |x|^2, the nearest to `{}`: {}", claim.text, describe(input));
    if (!fails) continue;
    finding.holds = false;
    finding.counterexample =
        shown_by(trial, {input},
                 fmt::format("the square of relative_error{} is {:.6g}, above {:.6g}",
                             measured.ratios.count() > 1 ? ", in the mean over seeds," : "",
                             finding.figure, bound));
  }
  if (finding.holds && finding.figure > finding.bound) {
    finding.detail += wanted > 1 ? ", within chance" : ", within rounding";
  }
  if (fewest < wanted) finding.cut = fmt::format("{} of {} seeds", fewest, wanted);
  return finding;
}

Finding absolute_error(const Trial& trial, const sema::Claim& claim) {
  Finding& finding = trial.begin("absolute_error");
  const std::vector<Input> inputs = trial.usual_inputs();
  const std::size_t wanted = draws_random_numbers(*trial.subject.ir) ? kErrorSamples : 1;
  std::size_t fewest = wanted;
  double worst = -HUGE_VAL;
  for (std::size_t i = 0; i < inputs.size() && finding.holds; ++i) {
    const Input& input = inputs[i];
    const auto bound = TRY_ON(trial, input, trial.claimed(claim.numbers[0], input.shape));
    const auto measured =
        TRY_ON(trial, input, measure(trial, input, share_of_time(trial, i, inputs.size()), wanted));
    fewest = std::min(fewest, measured.ratios.count());
    if (measured.farthest - bound <= worst) continue;
    worst = measured.farthest - bound;
    finding.figure = measured.farthest;
    finding.bound = bound;
    finding.detail =
        fmt::format("|x - C(x)|, the nearest to `{}`: {}", claim.text, describe(input));
    const double granted =
        bound + kRounding * std::max(bound, std::sqrt(norm_squared(input.values)));
    if (measured.farthest <= granted) continue;
    finding.holds = false;
    finding.counterexample =
        shown_by(trial, {input},
                 fmt::format("relative_error times the input's norm is {:.6g}, above {:.6g}",
                             finding.figure, bound));
  }
  if (fewest < wanted) finding.cut = fmt::format("{} of {} seeds", fewest, wanted);
  return finding;
}

// Estimators of thresholds: the share of elements that they keep of ordinary gradients, in the mean
// over steps, lies in the claimed range.

namespace {

constexpr std::uint32_t kDensitySteps = 40;
// Controllers have settled after this many steps.
constexpr std::uint32_t kFirstCounted = 20;
constexpr std::uint32_t kDensityGradients = 4;  // used in turn

rt::Result<double> density_of(const Trial& trial, const std::vector<Input>& gradients) {
  auto tensor = TRY(trial.subject.main->open(trial.request(gradients[0].shape)));
  Moments shares;
  for (std::uint32_t step = 0; step < kDensitySteps; ++step) {
    const auto decoded =
        TRY(round_trip_of(*tensor, gradients[step % kDensityGradients].values, step));
    if (step < kFirstCounted) continue;
    const auto kept = std::ranges::count_if(decoded, [](float x) { return x != 0; });
    shares.add(static_cast<double>(kept) / static_cast<double>(decoded.size()));
  }
  return shares.mean();
}

}  // namespace

Finding density(const Trial& trial, const sema::Claim& claim) {
  Finding& finding = trial.begin("density");
  const std::vector<Shape> shapes = trial.subject.info().is_matrix
                                        ? std::vector<Shape>{{100, 100}, {300, 100}}
                                        : std::vector<Shape>{{10000}, {100000}};
  std::vector<Input> inputs = trial.inputs(shapes);
  std::erase_if(inputs, [](const Input& input) { return !input.is_ordinary; });
  Sweep sweep(trial, inputs.size());
  double worst = -HUGE_VAL;
  while (sweep.goes_on() && finding.holds) {
    const Input& input = inputs[sweep.done() - 1];
    const auto least = TRY_ON(trial, input, trial.claimed(claim.numbers[0], input.shape));
    const auto most = TRY_ON(trial, input, trial.claimed(claim.numbers[1], input.shape));
    const std::vector<Input> gradients = variants_of(input, kDensityGradients);
    const auto found = TRY_ON(trial, input, density_of(trial, gradients));
    // The nearer bound, or the one that is exceeded.
    const double excess = std::max(found - most, least - found);
    if (excess <= worst) continue;
    worst = excess;
    const bool is_above = found - most >= least - found;
    finding.figure = found;
    finding.bound = is_above ? most : least;
    finding.detail = fmt::format("the share kept, at {} {:.4g}, the nearest: {}",
                                 is_above ? "most" : "least", finding.bound, describe(input));
    if (excess <= 1e-6) continue;
    finding.holds = false;
    finding.counterexample = shown_by(
        trial, gradients,
        fmt::format("the share of the output that is not 0 is not within {:.4g} and {:.4g}", least,
                    most));
    for (std::uint32_t step = 0; step < kDensitySteps; ++step) {
      finding.counterexample->order.push_back(step % kDensityGradients);
    }
  }
  finding.cut = finding.holds ? sweep.cut() : "";
  return finding;
}

}  // namespace cinch::verify
