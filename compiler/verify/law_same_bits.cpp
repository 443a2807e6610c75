// Promise 4 of the language: the same bits with any number of threads, at any width of vectors, on
// every device, and on all ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/verify/laws.h"
#include "runtime/core/mapped.h"
#include "runtime/core/numbers/floats.h"

namespace cinch::verify {
namespace {

constexpr std::uint32_t kSameBitsSteps = 3;
constexpr std::uint32_t kRanks = 3;
// Enough for several tasks per launch.
constexpr std::int64_t kManyElements = (1 << 18) + 3;

// The difference for one input, or nothing.
std::optional<std::string> compare(const Trace& expected, const Target& target, const Trial& trial,
                                   const std::vector<Input>& steps) {
  const rt::Result<Trace> found = trace_of(target, trial.request(steps.front().shape), steps);
  if (!found) return "the call fails: " + found.error().message;
  return find_difference(expected, *found);
}

Finding same_bits_on(std::string law, const Trial& trial, const Targets& targets,
                     const std::vector<Input>& inputs) {
  Finding& finding = trial.begin(std::move(law));
  const Target& main = *trial.subject.main;
  Sweep sweep(trial, inputs.size());
  bool left_out = false;
  while (!targets.empty() && sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    const std::vector<Input> steps = variants_of(input, kSameBitsSteps);
    const auto expected = TRY_ON(trial, input, trace_of(main, trial.request(input.shape), steps));
    for (const auto& target : targets) {
      if (target->most_elements > 0 && input.shape.num_elems() > target->most_elements) {
        left_out = true;
        continue;
      }
      const auto difference = compare(expected, *target, trial, steps);
      if (!difference || !finding.is_first_failure()) continue;
      finding.detail = fmt::format("{}: {} differs on {} and {}", describe(input), *difference,
                                   main.name, target->name);
      finding.counterexample =
          shown_by(trial, steps, *difference + " differs between the two runs");
      finding.counterexample->arguments = {main.arguments, target->arguments};
    }
  }
  if (targets.empty()) {
    finding.detail = "nothing to compare " + main.name + " with";
    return finding;
  }
  if (finding.holds) {
    finding.detail =
        fmt::format("differences, {} of {} steps: {}", sweep.inputs(), kSameBitsSteps, main.name);
    for (const auto& target : targets) finding.detail += ", " + target->name;
  }
  finding.cut = sweep.cut();
  if (left_out)
    finding.cut +=
        finding.cut.empty() ? "large inputs on slow devices" : ", large inputs on slow devices";
  return finding;
}

// Puts a large input first, since its work is divided into tasks.
std::vector<Input> with_a_large_one(const Trial& trial) {
  const bool is_matrix = trial.subject.info().is_matrix;
  const Shape large = is_matrix ? Shape{1025, kManyElements / 1025} : Shape{kManyElements};
  std::vector<Input> inputs = {make_input(Family::Normal, large)};
  const std::vector<Input> small = trial.inputs(edge_shapes(is_matrix));
  inputs.insert(inputs.end(), small.begin(), small.end());
  return inputs;
}

// One rank's view of a step: all payloads decoded, added in rank order, and finished.
rt::Result<std::vector<float>> update_of(Tensor& rank, const std::vector<Bytes>& payloads,
                                         std::size_t elements) {
  std::vector<float> sum(elements), decoded(elements);
  for (const Bytes& payload : payloads) {
    CINCH_TRY(rank.decode(payload, decoded, 0));
    for (std::size_t i = 0; i < elements; ++i) sum[i] += decoded[i];
  }
  CINCH_TRY(rank.finish(sum, 0));
  return sum;
}

rt::Result<std::vector<std::vector<float>>> updates_of_ranks(const Trial& trial,
                                                             const std::vector<Input>& gradients) {
  std::vector<std::unique_ptr<Tensor>> ranks;
  std::vector<Bytes> payloads;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    TensorRequest request = trial.request(gradients[rank].shape);
    request.worker = rank;
    request.world = kRanks;
    auto tensor = TRY(trial.subject.main->open(request));
    payloads.push_back(TRY(tensor->encode(gradients[rank].values, 0)));
    ranks.push_back(std::move(tensor));
  }
  std::vector<std::vector<float>> updates;
  updates.reserve(ranks.size());
  for (const auto& rank : ranks) {
    updates.push_back(TRY(update_of(*rank, payloads, gradients[0].values.size())));
  }
  return updates;
}

}  // namespace

Finding threads(const Trial& trial) {
  return same_bits_on("threads", trial, trial.subject.threads, with_a_large_one(trial));
}

Finding vector_widths(const Trial& trial) {
  return same_bits_on("vector_widths", trial, trial.subject.vector_widths, with_a_large_one(trial));
}

Finding devices(const Trial& trial) {
  return same_bits_on("devices", trial, trial.subject.devices,
                      trial.inputs(edge_shapes(trial.subject.info().is_matrix)));
}

Finding ranks(const Trial& trial) {
  Finding& finding = trial.begin("ranks");
  const std::vector<Input> inputs = trial.inputs(edge_shapes(trial.subject.info().is_matrix));
  Sweep sweep(trial, inputs.size());
  while (sweep.goes_on()) {
    const Input& input = inputs[sweep.done() - 1];
    const std::vector<Input> gradients = variants_of(input, kRanks);
    const auto updates = TRY_ON(trial, input, updates_of_ranks(trial, gradients));
    for (std::size_t rank = 1; rank < updates.size(); ++rank) {
      if (same_bits(updates[0], updates[rank]) || !finding.is_first_failure()) continue;
      finding.detail = fmt::format("{}: ranks 0 and {} end with other bits", describe(input), rank);
      finding.counterexample =
          shown_by_ranks(trial, gradients, "what rank 0 gets is not what others get");
    }
  }
  if (finding.holds) {
    finding.detail = fmt::format("updates that differ, {} ranks, {}", kRanks, sweep.inputs());
  }
  finding.cut = sweep.cut();
  return finding;
}

// Programs with a `sync` body: any number of ranks end with the same bits. A gradient that is not
// finite on one rank gives NaN on all ranks and changes no state.

namespace {

constexpr std::uint32_t kProtocolWorlds[] = {1, 2, 3, 8};
constexpr std::uint64_t kProtocolSteps = 2;

using Gradients = std::vector<std::vector<float>>;

Gradients values_of(const std::vector<Input>& inputs) {
  return mapped<std::vector<float>>(inputs, &Input::values);
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
    const auto updates = TRY(ranks.sync(gradients, step));
    if (!all_same_bits(updates)) return step;
  }
  return std::nullopt;
}

// The fault of a step in which the gradient of one rank is not finite, or "".
rt::Result<std::string> wrong_with(Ranks& ranks, Gradients gradients) {
  CINCH_TRY(ranks.sync(gradients, 0));
  const auto before = ranks.states();
  gradients[gradients.size() / 2].back() = std::numeric_limits<float>::quiet_NaN();
  const auto updates = TRY(ranks.sync(gradients, 1));
  if (ranks.states() != before) return std::string("a state has changed");
  const auto is_marked = [](const std::vector<float>& update) {
    return std::ranges::all_of(update, [](float x) { return std::isnan(x); });
  };
  if (!std::ranges::all_of(updates, is_marked)) return std::string("an update is not all NaN");
  return std::string();
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
      auto ranks = TRY_ON(trial, input, open_ranks(trial, input.shape, world));
      const auto step = TRY_ON(trial, input, differing_step(*ranks, values_of(gradients)));
      if (!step || !finding.is_first_failure()) continue;
      finding.detail = fmt::format("{} ranks, step {}, {}", world, *step, describe(input));
      std::string shows = "updates differ from rank to rank";
      // `cinch run` does not keep states of ranks.
      if (*step > 0)
        shows += fmt::format(" in step {}, of the same gradients again; a run of ranks is one step",
                             *step);
      finding.counterexample = shown_by_ranks(trial, gradients, shows);
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
      auto ranks = TRY_ON(trial, first, open_ranks(trial, first.shape, world));
      const auto wrong = TRY_ON(trial, first, wrong_with(*ranks, values_of(gradients)));
      if (wrong.empty() || !finding.is_first_failure()) continue;
      finding.detail = fmt::format("NaN on one of {} ranks, {}: {}", world, describe(first), wrong);
      std::vector<Input> poisoned = gradients;
      poisoned[world / 2].values.back() = std::numeric_limits<float>::quiet_NaN();
      finding.counterexample = shown_by_ranks(trial, poisoned, wrong);
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
