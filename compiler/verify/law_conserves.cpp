// Error feedback loses nothing: after any number of steps, the decoded updates plus the residual
// equal the sum of the gradients.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/verify/laws.h"
#include "compiler/verify/samples.h"
#include "compiler/verify/trace.h"

namespace cinch::verify {

namespace {

constexpr std::uint64_t kConservesSteps = 100;
constexpr std::uint32_t kConservesGradients = 4;  // used in turn
constexpr double kTolerance = 1e-5;

struct Drift {
  double distance = 0;  // relative to the gradients' magnitudes
  std::uint64_t steps = 0;
};

class Sums {
 public:
  explicit Sums(std::size_t n) : kept_(n), magnitudes_(n) {}

  void add(const std::vector<float>& gradient, const std::vector<float>& decoded) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      kept_[i] += static_cast<double>(gradient[i]) - decoded[i];
      magnitudes_[i] += std::abs(gradient[i]);
    }
  }
  double distance_to(std::span<const float> residual) const {
    double squares = 0, norm = 0;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const double d = kept_[i] - residual[i];
      squares += d * d;
      norm += magnitudes_[i] * magnitudes_[i];
    }
    return norm > 0 ? std::sqrt(squares / norm) : std::sqrt(squares);
  }

 private:
  std::vector<double> kept_, magnitudes_;
};

std::vector<float> floats_of(const Bytes& state, std::size_t n) {
  std::vector<float> values(n);
  std::memcpy(values.data(), state.data(), std::min(state.size(), n * sizeof(float)));
  return values;
}

// Runs until the drift exceeds the tolerance.
rt::Result<Drift> drift_of(const Trial& trial, const std::vector<Input>& gradients,
                           std::uint32_t state) {
  auto tensor = trial.subject.main->open(trial.request(gradients[0].shape));
  CINCH_TRY(tensor);
  Sums sums(gradients[0].values.size());
  Drift drift;
  while (drift.steps < kConservesSteps && !(drift.distance > kTolerance)) {
    const std::vector<float>& gradient = gradients[drift.steps % kConservesGradients].values;
    const auto decoded = round_trip_of(**tensor, gradient, drift.steps);
    CINCH_TRY(decoded);
    sums.add(gradient, *decoded);
    ++drift.steps;
    drift.distance = sums.distance_to(floats_of((*tensor)->states()[state], gradient.size()));
  }
  return drift;
}

Counterexample steps_that_lose(const Trial& trial, std::vector<Input> gradients,
                               std::uint64_t steps, const std::string& state) {
  gradients.resize(std::min<std::size_t>(gradients.size(), steps));
  Counterexample counterexample = shown_by(
      trial, std::move(gradients),
      fmt::format("outputs so far and `{}` of states.bin do not add up to the inputs so far",
                  state));
  counterexample.arguments = {"--state-out states.bin"};
  for (std::uint64_t step = 0; step < steps; ++step) {
    counterexample.order.push_back(step % kConservesGradients);
  }
  return counterexample;
}

}  // namespace

Finding conserves(const Trial& trial, const sema::Claim& claim) {
  Finding& finding = trial.begin("conserves");
  finding.bound = kTolerance;
  const std::vector<Input> inputs = trial.usual_inputs();
  const rt::StateInfo& state = trial.subject.info().states[claim.state];
  Sweep sweep(trial, inputs.size());
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    const std::vector<Input> gradients = variants_of(input, kConservesGradients);
    const rt::Result<Drift> drift = drift_of(trial, gradients, claim.state);
    if (!drift) return failed_call(finding.law, trial, input, drift.error());
    const bool is_lost = !(drift->distance <= kTolerance);
    if (!finding.holds || (!is_lost && drift->distance < finding.figure)) continue;
    finding.figure = drift->distance;
    finding.detail = fmt::format("of the gradients' sum after {} step{}, the worst: {}",
                                 drift->steps, drift->steps == 1 ? "" : "s", describe(input));
    if (!is_lost) continue;
    finding.holds = false;
    finding.counterexample = steps_that_lose(trial, gradients, drift->steps, state.name);
  }
  finding.cut = sweep.cut();
  return finding;
}

}  // namespace cinch::verify
