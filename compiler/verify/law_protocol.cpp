// Programs with a `sync` body: any number of ranks end with the same bits. A gradient that is not
// finite on one rank gives NaN on all ranks and changes no state.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/verify/laws.h"
#include "runtime/core/numbers/floats.h"

namespace cinch::verify {
namespace {

constexpr std::uint32_t kProtocolWorlds[] = {1, 2, 3, 8};
constexpr std::uint64_t kProtocolSteps = 2;

using Gradients = std::vector<std::vector<float>>;

Gradients values_of(const std::vector<Input>& inputs) {
  Gradients values;
  values.reserve(inputs.size());
  for (const Input& input : inputs) values.push_back(input.values);
  return values;
}

rt::Result<std::unique_ptr<Ranks>> open_ranks(const Trial& trial, const Shape& shape,
                                              std::uint32_t world) {
  TensorRequest request = trial.request(shape);
  request.world = world;
  return trial.subject.main->open_ranks(request);
}

// The first step whose updates differ between ranks.
rt::Result<std::optional<std::uint64_t>> differing_step(Ranks& ranks, const Gradients& gradients) {
  for (std::uint64_t step = 0; step < kProtocolSteps; ++step) {
    const auto updates = ranks.sync(gradients, step);
    CINCH_TRY(updates);
    if (!all_same_bits(*updates)) return step;
  }
  return std::nullopt;
}

// The fault of a step in which the gradient of one rank is not finite, or "".
rt::Result<std::string> wrong_with(Ranks& ranks, Gradients gradients) {
  CINCH_TRY(ranks.sync(gradients, 0));
  const auto before = ranks.states();
  gradients[gradients.size() / 2].back() = std::numeric_limits<float>::quiet_NaN();
  const auto updates = ranks.sync(gradients, 1);
  CINCH_TRY(updates);
  if (ranks.states() != before) return std::string("a state has changed");
  const auto is_marked = [](const std::vector<float>& update) {
    return std::ranges::all_of(update, [](float x) { return std::isnan(x); });
  };
  if (!std::ranges::all_of(*updates, is_marked)) return std::string("an update is not all NaN");
  return std::string();
}

// `cinch run` does not keep states of ranks.
std::string shown_at(std::uint64_t step) {
  if (step == 0) return "updates differ from rank to rank";
  return fmt::format(
      "updates differ from rank to rank in step {}, of the same gradients again; a run of ranks is "
      "one step",
      step);
}

Counterexample ranks_of(const Trial& trial, std::vector<Input> inputs, std::string shows) {
  return {std::move(inputs), {}, true, trial.seed, 0, {""}, std::move(shows)};
}

}  // namespace

Finding protocol_ranks(const Trial& trial) {
  Finding& finding = trial.begin("ranks");
  const std::vector<Input> inputs = trial.inputs(edge_shapes(trial.subject.info().is_matrix));
  std::vector<std::pair<std::uint32_t, bool>> runs{{3, true}};
  for (const std::uint32_t world : kProtocolWorlds) runs.emplace_back(world, false);
  Sweep sweep(trial, inputs.size());
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    for (const auto& [world, is_opposed] : runs) {
      const std::vector<Input> gradients =
          is_opposed ? opposed_to(input, world) : variants_of(input, world);
      auto ranks = open_ranks(trial, input.shape, world);
      if (!ranks) return failed_call(finding.law, trial, input, ranks.error());
      const auto found = differing_step(**ranks, values_of(gradients));
      if (!found) return failed_call(finding.law, trial, input, found.error());
      const std::optional<std::uint64_t> step = *found;
      if (!step) continue;
      finding.figure += 1;
      if (!finding.holds) continue;
      finding.holds = false;
      finding.detail = fmt::format("{} ranks, step {}, {}", world, *step, describe(input));
      finding.counterexample = ranks_of(trial, gradients, shown_at(*step));
    }
  }
  if (finding.holds) {
    finding.detail = fmt::format("updates that differ, 1, 2, 3 and 8 ranks, {}", sweep.inputs());
  }
  finding.cut = sweep.cut();
  return finding;
}

Finding protocol_non_finite(const Trial& trial) {
  Finding& finding = trial.begin("non_finite");
  const std::vector<Shape> shapes = edge_shapes(trial.subject.info().is_matrix);
  Sweep sweep(trial, shapes.size());
  while (sweep.goes_on()) {
    const Input first = make_input(Family::Normal, shapes[sweep.done() - 1]);
    for (const std::uint32_t world : kProtocolWorlds) {
      const std::vector<Input> gradients = variants_of(first, world);
      auto ranks = open_ranks(trial, first.shape, world);
      if (!ranks) return failed_call(finding.law, trial, first, ranks.error());
      const auto wrong = wrong_with(**ranks, values_of(gradients));
      if (!wrong) return failed_call(finding.law, trial, first, wrong.error());
      if (wrong->empty()) continue;
      finding.figure += 1;
      if (!finding.holds) continue;
      finding.holds = false;
      finding.detail =
          fmt::format("NaN on one of {} ranks, {}: {}", world, describe(first), *wrong);
      std::vector<Input> poisoned = gradients;
      poisoned[world / 2].values.back() = std::numeric_limits<float>::quiet_NaN();
      finding.counterexample = ranks_of(trial, poisoned, *wrong);
    }
  }
  if (finding.holds) {
    finding.detail = fmt::format(
        "steps with NaN on one of 1, 2, 3 and 8 ranks, {} shapes, that are "
        "not told apart",
        sweep.done());
  }
  finding.cut = sweep.cut("shapes");
  return finding;
}

}  // namespace cinch::verify
