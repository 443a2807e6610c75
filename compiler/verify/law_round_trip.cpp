// What every payload keeps: its shape and length, marks of non-finite gradients, and what a change
// of the gradient that rounds nothing does.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/verify/laws.h"
#include "runtime/payload/payload.h"

namespace cinch::verify {
namespace {

constexpr std::uint32_t kRoundTripSteps = 3;

std::vector<Shape> shapes_of(const Trial& trial) {
  std::vector<Shape> shapes = edge_shapes(trial.subject.info().is_matrix);
  shapes.insert(shapes.begin(), Shape{0, trial.subject.info().is_matrix ? 3 : 1});
  return shapes;
}

struct Bounded {
  std::int64_t size_bytes = 0, bound_bytes = 0;
  double share() const {
    return static_cast<double>(size_bytes) / static_cast<double>(bound_bytes);
  }
};

}  // namespace

Finding round_trip(const Trial& trial) {
  Finding& finding = trial.begin("round_trip");
  const std::vector<Input> inputs = trial.inputs(shapes_of(trial));
  Sweep sweep(trial, inputs.size());
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    auto tensor = TRY_ON(trial, input, trial.subject.main->open(trial.request(input.shape)));
    for (std::uint32_t step = 0; step < kRoundTripSteps; ++step) {
      const auto decoded =
          TRY_ON(trial, input, round_trip_of(*tensor, variant_of(input, step).values, step));
      if (std::ranges::none_of(decoded, [](float x) { return std::isnan(x); })) continue;
      if (finding.is_first_failure()) {
        finding.counterexample =
            shown_by(trial, variants_of(input, step + 1), "the output holds a NaN");
        finding.detail = describe(input) + ": a finite gradient decodes to NaN";
      }
      break;
    }
  }
  if (finding.holds) {
    finding.detail = fmt::format("inputs, of {}, that fail or decode to NaN", sweep.done());
  }
  finding.cut = sweep.cut();
  return finding;
}

Finding size_bound(const Trial& trial) {
  Finding& finding = trial.begin("size_bound");
  const std::vector<Input> inputs = trial.inputs(shapes_of(trial));
  Sweep sweep(trial, inputs.size());
  Bounded worst;
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    auto tensor = TRY_ON(trial, input, trial.subject.main->open(trial.request(input.shape)));
    for (std::uint32_t step = 0; step < kRoundTripSteps; ++step) {
      const auto payload =
          TRY_ON(trial, input, tensor->encode(variant_of(input, step).values, step));
      const auto bound = TRY_ON(trial, input, tensor->payload_bound(step));
      const Bounded found{static_cast<std::int64_t>(payload.size()), bound};
      if (worst.bound_bytes != 0 && found.share() <= worst.share() &&
          (found.share() < worst.share() || found.size_bytes <= worst.size_bytes)) {
        continue;
      }
      worst = found;
      finding.detail = "bytes, the fullest: " + describe(input);
      if (found.size_bytes <= found.bound_bytes || !finding.holds) continue;
      finding.holds = false;
      finding.counterexample =
          shown_by(trial, variants_of(input, step + 1), "payload_bytes is above bound_bytes");
    }
  }
  finding.figure = static_cast<double>(worst.size_bytes);
  finding.bound = static_cast<double>(worst.bound_bytes);
  finding.cut = sweep.cut();
  return finding;
}

// A gradient with NaN or an infinity is marked, decodes to NaN throughout, and leaves every state
// unchanged.

namespace {

struct Poison {
  const char* name;
  float value;
};
constexpr Poison kPoisons[] = {{"NaN", std::numeric_limits<float>::quiet_NaN()},
                               {"inf", std::numeric_limits<float>::infinity()},
                               {"-inf", -std::numeric_limits<float>::infinity()}};

// The fault of a step whose gradient is not finite, or "".
rt::Result<std::string> wrong_with(Tensor& tensor, const std::vector<float>& poisoned) {
  const std::vector<Bytes> before = tensor.states();
  const Bytes payload = TRY(tensor.encode(poisoned, 1));
  const auto header = TRY(rt::read_payload_header(payload));
  if (!header.is_non_finite()) return std::string("the payload is not marked");
  if (tensor.states() != before) return std::string("a state has changed");
  std::vector<float> out(poisoned.size(), 0.0f);
  CINCH_TRY(tensor.decode(payload, out, 1));
  if (!std::ranges::all_of(out, [](float x) { return std::isnan(x); })) {
    return std::string("not all of it decodes to NaN");
  }
  return std::string();
}

}  // namespace

Finding non_finite(const Trial& trial) {
  Finding& finding = trial.begin("non_finite");
  const std::vector<Shape> shapes = edge_shapes(trial.subject.info().is_matrix);
  Sweep sweep(trial, shapes.size());
  std::size_t tried = 0;
  while (sweep.goes_on()) {
    const Input first = make_input(Family::Normal, shapes[sweep.done() - 1]);
    const std::size_t last = first.values.size() - 1;
    for (const Poison& poison : kPoisons) {
      auto tensor = TRY_ON(trial, first, trial.subject.main->open(trial.request(first.shape)));
      const auto payload = TRY_ON(trial, first, tensor->encode(first.values, 0));
      for (std::size_t at : {std::size_t{0}, last / 2, last}) {
        Input poisoned = variant_of(first, 1);
        poisoned.values[at] = poison.value;
        const auto wrong = TRY_ON(trial, poisoned, wrong_with(*tensor, poisoned.values));
        ++tried;
        if (wrong.empty() || !finding.is_first_failure()) continue;
        finding.detail = fmt::format("{} at {} of {}: {}", poison.name, at, describe(first), wrong);
        finding.counterexample = shown_by(trial, {first, poisoned}, wrong);
      }
    }
  }
  if (finding.holds)
    finding.detail =
        fmt::format("gradients with NaN or inf, of {}, that are not told apart", tried);
  finding.cut = sweep.cut("shapes");
  return finding;
}

// How a change of the gradient that causes no rounding affects the decoded values.

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
  const auto plain = TRY(trial.subject.main->open(trial.request(input.shape)));
  const auto changed = TRY(trial.subject.main->open(trial.request(input.shape)));
  for (step = 0; step < kEquivarianceSteps; ++step) {
    const std::vector<float> gradient = variant_of(input, step).values;
    const auto expected = TRY(round_trip_of(*plain, gradient, step));
    const auto found = TRY(round_trip_of(*changed, times(gradient, factor), step));
    const std::size_t different = num_different(times(expected, factor), found);
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

}  // namespace

Finding equivariant(const Trial& trial, const sema::Claim& claim) {
  constexpr float kPowers[] = {0x1p-4f, 2, 0x1p7f}, kOpposite[] = {-1};
  const bool is_of_scale = claim.kind == sema::ClaimKind::ScaleEquivariant;
  const std::span<const float> factors = is_of_scale ? std::span<const float>(kPowers) : kOpposite;
  Finding& finding = trial.begin(std::string(sema::claim_info(claim.kind).name));
  const std::vector<Input> inputs = trial.inputs(edge_shapes(trial.subject.info().is_matrix));
  Sweep sweep(trial, inputs.size());
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    for (float factor : factors) {
      std::uint32_t step = 0;
      const auto different = TRY_ON(trial, input, num_different_at(trial, input, factor, step));
      if (different == 0 || !finding.is_first_failure()) continue;
      finding.detail = fmt::format("{}, times {}: {} of {} elements of step {} differ",
                                   describe(input), factor, different, input.values.size(), step);
      finding.counterexample = pair_of(trial, input, factor, step);
    }
  }
  if (finding.holds) {
    finding.detail = fmt::format("differences, {} of {} steps", sweep.inputs(), kEquivarianceSteps);
  }
  finding.cut = sweep.cut();
  return finding;
}

Finding idempotent(const Trial& trial, const sema::Claim&) {
  Finding& finding = trial.begin("idempotent");
  const std::vector<Input> inputs = trial.inputs(edge_shapes(trial.subject.info().is_matrix));
  Sweep sweep(trial, inputs.size());
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    const TensorRequest request = trial.request(input.shape);
    const auto once =
        TRY_ON(trial, input, round_trip_of(*trial.subject.main, request, input.values));
    const auto twice = TRY_ON(trial, input, round_trip_of(*trial.subject.main, request, once));
    const std::size_t different = num_different(once, twice);
    if (different == 0 || !finding.is_first_failure()) continue;
    finding.detail = fmt::format("{}: {} of {} elements change when decoded values are compressed",
                                 describe(input), different, once.size());
    Input again = input;
    again.values = once;
    finding.counterexample =
        shown_by(trial, {again}, "the input was decoded before, and relative_error is not 0");
  }
  if (finding.holds) finding.detail = "differences, " + sweep.inputs();
  finding.cut = sweep.cut();
  return finding;
}

}  // namespace cinch::verify
