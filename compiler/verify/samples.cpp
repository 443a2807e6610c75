#include "compiler/verify/samples.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/ops.h"
#include "compiler/verify/trace.h"

namespace cinch::verify {

namespace {

// This many samples are always taken, however short the time.
constexpr std::size_t kLeastSamples = 64;

}  // namespace

double standard_errors(const Moments& samples, double expected, double largest) {
  const double distance = samples.mean() - expected;
  if (distance == 0) return 0;
  const auto count = static_cast<double>(samples.count());
  const double unseen = std::abs(distance) * largest;
  const double error = std::sqrt((samples.variance() + unseen) / count);
  return error > 0 ? distance / error : std::copysign(HUGE_VAL, distance);
}

bool draws_random_numbers(const ir::Program& program) {
  const auto draws = [](const ir::Function& function) {
    return std::ranges::any_of(function.ops, [](const ir::Op& op) { return ir::is_draw(op.kind); });
  };
  return std::ranges::any_of(program.functions, draws) ||
         std::ranges::any_of(program.state_inits, draws);
}

rt::Result<std::size_t> sample_seeds(const Trial& trial, const Input& input, std::size_t wanted,
                                     Clock::time_point until, const Sampled& sampled) {
  if (!draws_random_numbers(*trial.subject.ir)) wanted = 1;
  std::size_t taken = 0;
  while (taken < wanted && (taken < kLeastSamples || Clock::now() < until)) {
    TensorRequest request = trial.request(input.shape);
    request.seed = trial.seed + taken;
    const rt::Result<std::vector<float>> decoded =
        round_trip_of(*trial.subject.main, request, input.values);
    CINCH_TRY(decoded);
    sampled(*decoded);
    ++taken;
  }
  return taken;
}

Clock::time_point share_of_time(const Trial& trial, std::size_t index, std::size_t count) {
  const Clock::time_point now = Clock::now();
  const auto left = std::max(trial.deadline - now, Clock::duration{});
  return now + left / static_cast<Clock::duration::rep>(count - index);
}

double norm_squared(std::span<const float> x) {
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

double distance_squared(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - y[i];
    sum += d * d;
  }
  return sum;
}

}  // namespace cinch::verify
