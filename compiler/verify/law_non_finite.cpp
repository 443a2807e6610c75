// A gradient with NaN or an infinity is marked, decodes to NaN throughout, and leaves every state
// unchanged.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/verify/laws.h"
#include "compiler/verify/trace.h"
#include "runtime/payload/payload.h"

namespace cinch::verify {

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
  const rt::Result<Bytes> payload = tensor.encode(poisoned, 1);
  CINCH_TRY(payload);
  const auto header = rt::read_payload_header(*payload);
  CINCH_TRY(header);
  if (!header->is_non_finite()) return std::string("the payload is not marked");
  if (tensor.states() != before) return std::string("a state has changed");
  std::vector<float> out(poisoned.size(), 0.0f);
  CINCH_TRY(tensor.decode(*payload, out, 1));
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
      auto tensor = trial.subject.main->open(trial.request(first.shape));
      if (!tensor) return failed_call(finding.law, trial, first, tensor.error());
      const rt::Result<Bytes> payload = (*tensor)->encode(first.values, 0);
      if (!payload) return failed_call(finding.law, trial, first, payload.error());
      for (std::size_t at : {std::size_t{0}, last / 2, last}) {
        Input poisoned = variant_of(first, 1);
        poisoned.values[at] = poison.value;
        const rt::Result<std::string> wrong = wrong_with(**tensor, poisoned.values);
        if (!wrong) return failed_call(finding.law, trial, poisoned, wrong.error());
        ++tried;
        if (wrong->empty()) continue;
        finding.figure += 1;
        if (!finding.holds) continue;
        finding.holds = false;
        finding.detail =
            fmt::format("{} at {} of {}: {}", poison.name, at, describe(first), *wrong);
        finding.counterexample = shown_by(trial, {first, poisoned}, *wrong);
      }
    }
  }
  if (finding.holds)
    finding.detail =
        fmt::format("gradients with NaN or inf, of {}, that are not told apart", tried);
  finding.cut = sweep.cut("shapes");
  return finding;
}

}  // namespace cinch::verify
