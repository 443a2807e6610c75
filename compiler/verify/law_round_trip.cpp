// Every payload decodes to a tensor of the declared shape without NaN, and is not longer than the
// bound.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/verify/laws.h"
#include "compiler/verify/trace.h"

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
  bool is_above() const { return size_bytes > bound_bytes; }
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
    auto tensor = trial.subject.main->open(trial.request(input.shape));
    if (!tensor) return failed_call(finding.law, trial, input, tensor.error());
    for (std::uint32_t step = 0; step < kRoundTripSteps; ++step) {
      const rt::Result<std::vector<float>> decoded =
          round_trip_of(**tensor, variant_of(input, step).values, step);
      if (!decoded) return failed_call(finding.law, trial, input, decoded.error());
      if (std::ranges::none_of(*decoded, [](float x) { return std::isnan(x); })) continue;
      finding.figure += 1;
      if (finding.holds) {
        finding.counterexample =
            shown_by(trial, variants_of(input, step + 1), "the output holds a NaN");
        finding.detail = describe(input) + ": a finite gradient decodes to NaN";
      }
      finding.holds = false;
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
    auto tensor = trial.subject.main->open(trial.request(input.shape));
    if (!tensor) return failed_call(finding.law, trial, input, tensor.error());
    for (std::uint32_t step = 0; step < kRoundTripSteps; ++step) {
      const rt::Result<Bytes> payload = (*tensor)->encode(variant_of(input, step).values, step);
      if (!payload) return failed_call(finding.law, trial, input, payload.error());
      const rt::Result<std::int64_t> bound = (*tensor)->payload_bound(step);
      if (!bound) return failed_call(finding.law, trial, input, bound.error());
      const Bounded found{static_cast<std::int64_t>(payload->size()), *bound};
      if (worst.bound_bytes != 0 && found.share() <= worst.share() &&
          (found.share() < worst.share() || found.size_bytes <= worst.size_bytes)) {
        continue;
      }
      worst = found;
      finding.detail = "bytes, the fullest: " + describe(input);
      if (!found.is_above() || !finding.holds) continue;
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

}  // namespace cinch::verify
