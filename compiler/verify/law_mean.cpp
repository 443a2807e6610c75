// Unbiased: the mean over seeds is the gradient. Tests each element, and a few sums of all
// elements, in which small biases of many elements add up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/verify/laws.h"
#include "compiler/verify/samples.h"
#include "runtime/core/lang.h"

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
    std::vector<float> magnitudes;
    magnitudes.reserve(input.values.size());
    for (float value : input.values) magnitudes.push_back(std::abs(value));
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
        sample_seeds(trial, input, wanted, share_of_time(trial, i, inputs.size()),
                     [&](const std::vector<float>& decoded) {
                       for (std::size_t j = is_random ? 1 : kMeanSamples; j > 0; --j) {
                         mean.add(decoded);
                       }
                     });
    if (!taken) return failed_call(finding.law, trial, input, taken.error());
    fewest = std::min(fewest, *taken);
    const double found = mean.standard_errors();
    if (found < finding.figure && !finding.detail.empty()) continue;
    finding.figure = found;
    finding.detail = "standard errors of the mean, at most: " + describe(input);
    if (found <= kStandardErrors) continue;
    finding.holds = false;
    finding.counterexample = shown_by(
        trial, {input},
        is_random ? fmt::format("the mean of the outputs over --seed {} to {} is not the input",
                                trial.seed, trial.seed + *taken - 1)
                  : "the output, the same for every seed, is not the input");
  }
  if (fewest < wanted) finding.cut = fmt::format("{} of {} seeds", fewest, wanted);
  return finding;
}

}  // namespace cinch::verify
