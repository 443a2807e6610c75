// Payloads that add up: the payloads of 1, 2, 3 and 8 ranks are summed field by field, then decoded
// once. The result must be the sum of their decoded values, or the sum of payloads must be the
// payload of the sum of the gradients. The interpreter decodes the sum, since its integers are wide
// enough.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/verify/laws.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::verify {
namespace {

constexpr std::uint32_t kLinearWorlds[] = {1, 2, 3, 8};

// Integers keep all 64 bits; floats are rounded to the field's type for every rank.
std::uint64_t joined(const rt::FieldInfo& field, std::uint64_t a, std::uint64_t b) {
  const DType dtype = field.type.dtype;
  const std::uint64_t operands[] = {a, b};
  if (field.sum == rt::FieldSum::Sum && !is_float(dtype)) return a + b;
  const ScalarOp op = field.sum == rt::FieldSum::Min   ? ScalarOp::min
                      : field.sum == rt::FieldSum::Max ? ScalarOp::max
                                                       : ScalarOp::add;
  if (!is_narrow_float(dtype)) return evaluate_scalar(op, dtype, operands);
  const std::uint64_t wide[] = {convert_element(dtype, kF32, a), convert_element(dtype, kF32, b)};
  return convert_element(kF32, dtype, evaluate_scalar(op, kF32, wide));
}

double value_of(DType dtype, std::uint64_t element) {
  return f64_of(convert_element(dtype, kF64, element));
}

// The distance relative to the summed values.
double field_distance(const Fields& a, const Fields& b) {
  double squares = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].bits.size(); ++j) {
      const double x = value_of(a[i].dtype, a[i].bits[j]), y = value_of(b[i].dtype, b[i].bits[j]);
      squares += (x - y) * (x - y);
      norm += x * x;
    }
  }
  return squares == 0 ? 0 : std::sqrt(squares / norm);
}

// The most that rounding adds: that of the coarsest summed float.
double tolerance_of(const rt::ProgramInfo& info, std::uint32_t world) {
  int digits = 24;
  for (const rt::FieldInfo& field : info.wire.fields) {
    if (is_float(field.type.dtype)) {
      digits = std::min(digits, significand_digits(field.type.dtype));
    }
  }
  return 4 * world * std::ldexp(1.0, -digits);
}

struct Ranks {
  Fields sum;                       // of the payloads
  std::vector<double> sum_decoded;  // the sum of the decoded values
  std::vector<float> sum_gradients;
  double magnitude = 0;  // of the decoded values, for comparison
};

rt::Result<Ranks> run_ranks(const Trial& trial, const Input& input, std::uint32_t world,
                            const HostEnv& env) {
  Ranks ranks;
  ranks.sum_decoded.resize(input.values.size());
  ranks.sum_gradients.resize(input.values.size());
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const std::vector<float> gradient = variant_of(input, rank).values;
    std::vector<float> decoded;
    const auto payload = TRY(encode_on(trial, input.shape, rank, world, gradient, &decoded));
    auto fields = TRY(fields_of(trial.subject.info(), payload, env));
    if (rank == 0) {
      ranks.sum = std::move(fields);
    } else {
      for (std::size_t i = 0; i < ranks.sum.size(); ++i) {
        for (std::size_t j = 0; j < ranks.sum[i].bits.size(); ++j) {
          std::uint64_t& sum = ranks.sum[i].bits[j];
          sum = joined(trial.subject.info().wire.fields[i], sum, fields[i].bits[j]);
        }
      }
    }
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      ranks.sum_decoded[i] += decoded[i];
      ranks.sum_gradients[i] += gradient[i];
    }
    ranks.magnitude += std::sqrt(norm_squared(decoded));
  }
  return ranks;
}

// The distance between the decoded sum and the sum of the decoded values.
rt::Result<double> decode_distance(const Trial& trial, const Shape& shape, std::uint32_t world,
                                   const Ranks& ranks) {
  interp::Inputs inputs{.rows = shape.rows,
                        .cols = shape.cols,
                        .world = world,
                        .call_extern = trial.subject.call_extern};
  inputs.draw.seed = trial.seed;
  inputs.fields = ranks.sum;
  const auto out = TRY(interp::run(*trial.subject.ir, ir::FunctionKind::Decode, inputs));
  const std::optional<interp::Array>& output = out.output;
  if (!output) return rt::fail(rt::ErrorKind::Internal, "decode gave nothing");
  const std::vector<float> decoded = interp::to_floats(*output);
  double squares = 0;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    const double d = decoded[i] - ranks.sum_decoded[i];
    squares += d * d;
  }
  return squares == 0 ? 0 : std::sqrt(squares) / ranks.magnitude;
}

rt::Result<double> distance_of(const Trial& trial, const Input& input, std::uint32_t world) {
  const rt::ParameterValues parameters(trial.subject.info());
  const HostEnv env = env_of(input.shape, world, parameters);
  const auto ranks = TRY(run_ranks(trial, input, world, env));
  auto decoded = decode_distance(trial, input.shape, world, ranks);
  if (!decoded || *decoded <= tolerance_of(trial.subject.info(), world)) return decoded;
  // The distance between the sum and the payload of the summed gradients.
  const auto payload = TRY(encode_on(trial, input.shape, 0, world, ranks.sum_gradients, nullptr));
  const auto fields = TRY(fields_of(trial.subject.info(), payload, env));
  return std::min(*decoded, field_distance(ranks.sum, fields));
}

}  // namespace

Finding linear(const Trial& trial) {
  Finding& finding = trial.begin("linear");
  if (trial.subject.info().aggregation == rt::Aggregation::Gather) {
    finding.holds = false;
    finding.figure = 1;
    finding.detail =
        trial.subject.info().has_sync
            ? "there are no payloads to add up: ranks synchronise by a `sync` body"
            : "payloads do not add up: a field is not declared `by sum`, or its length is counted";
    return finding;
  }
  const std::vector<Input> inputs = trial.usual_inputs();
  Sweep sweep(trial, inputs.size() * std::size(kLinearWorlds));
  double worst = -1;
  while (sweep.goes_on() && finding.holds) {
    const Input& input = inputs[(sweep.done() - 1) / std::size(kLinearWorlds)];
    const std::uint32_t world = kLinearWorlds[(sweep.done() - 1) % std::size(kLinearWorlds)];
    const auto distance = TRY_ON(trial, input, distance_of(trial, input, world));
    const double bound = tolerance_of(trial.subject.info(), world);
    if (distance / bound <= worst) continue;
    worst = distance / bound;
    finding.figure = distance;
    finding.bound = bound;
    finding.detail = fmt::format("relative distance of the summed payload's, {} rank{}: {}", world,
                                 world == 1 ? "" : "s", describe(input));
    if (distance <= bound) continue;
    finding.holds = false;
    finding.counterexample = shown_by_ranks(
        trial, variants_of(input, world),
        "the sum over ranks of what is decoded is not what the summed payload decodes to");
  }
  if (finding.holds) finding.cut = sweep.cut("inputs and numbers of ranks");
  return finding;
}

// Error feedback loses nothing: after any number of steps, the decoded updates plus the residual
// equal the sum of the gradients.

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

// Runs until the drift exceeds the tolerance.
rt::Result<Drift> drift_of(const Trial& trial, const std::vector<Input>& gradients,
                           std::uint32_t state) {
  auto tensor = TRY(trial.subject.main->open(trial.request(gradients[0].shape)));
  Sums sums(gradients[0].values.size());
  Drift drift;
  while (drift.steps < kConservesSteps && !(drift.distance > kTolerance)) {
    const std::vector<float>& gradient = gradients[drift.steps % kConservesGradients].values;
    const auto decoded = TRY(round_trip_of(*tensor, gradient, drift.steps));
    sums.add(gradient, decoded);
    ++drift.steps;
    const Bytes bytes = tensor->states()[state];
    std::vector<float> values(gradient.size());
    std::memcpy(values.data(), bytes.data(), std::min(bytes.size(), values.size() * sizeof(float)));
    drift.distance = sums.distance_to(values);
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
    const auto drift = TRY_ON(trial, input, drift_of(trial, gradients, claim.state));
    const bool is_lost = !(drift.distance <= kTolerance);
    if (!finding.holds || (!is_lost && drift.distance < finding.figure)) continue;
    finding.figure = drift.distance;
    finding.detail = fmt::format("of the gradients' sum after {} step{}, the worst: {}",
                                 drift.steps, drift.steps == 1 ? "" : "s", describe(input));
    if (!is_lost) continue;
    finding.holds = false;
    finding.counterexample = steps_that_lose(trial, gradients, drift.steps, state.name);
  }
  finding.cut = sweep.cut();
  return finding;
}

}  // namespace cinch::verify
