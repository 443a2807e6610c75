#include "runtime/planner/choose_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace cinch::rt {
namespace {

// Small pieces have costs that the prediction does not include.
constexpr double kTie = 1.03;
// A plan with more tasks is not examined, unless it is the only one.
constexpr std::uint64_t kMostTasks = 300000;
// Limits of trials: their number, how much slower than the fastest a prediction may be (as a share
// or in seconds), and the steps of each.
constexpr std::size_t kMostTried = 8;
constexpr double kUncertainShare = 0.5, kUncertainSeconds = 2e-3, kStepsTried = 5;

bool is_compressed(const PlanRequest& request) {
  return std::ranges::any_of(request.tensors,
                             [](const PlanTensor& tensor) { return tensor.codec != kDense; });
}

std::uint64_t gradient_bytes(const PlanRequest& request) {
  std::uint64_t bytes = 0;
  for (const PlanTensor& t : request.tensors)
    bytes += 4 * static_cast<std::uint64_t>(t.num_elems());
  return bytes;
}

// Approximate; every rank has some tasks for each other rank and piece.
std::uint64_t num_tasks(const PlanRequest& request, std::uint64_t piece_bytes) {
  const std::uint64_t pieces = gradient_bytes(request) / piece_bytes + 1;
  return pieces * request.world * (request.world + 5);
}

// A candidate that was tried ranks before one that was only predicted.
const PlanCandidate* cheapest(const PlanChoice& choice, bool is_dense) {
  const PlanCandidate* found = nullptr;
  for (const PlanCandidate& each : choice.candidates) {
    if (each.is_dense != is_dense) continue;
    const bool is_better =
        found == nullptr || (each.is_tried() && !found->is_tried()) ||
        (each.is_tried() == found->is_tried() && each.seconds() < found->seconds());
    if (is_better) found = &each;
  }
  return found;
}

std::string reason_of(const PlanChoice& choice) {
  const PlanCandidate* const other = cheapest(choice, !choice.chosen.is_dense);
  const bool are_alike = other == nullptr || other->is_tried() == choice.chosen.is_tried();
  const auto named = [are_alike](const PlanCandidate& candidate) {
    const std::string name = describe_candidate(candidate);
    const double predicted = 1e3 * candidate.cost.seconds, tried = 1e3 * candidate.tried_seconds;
    // Adds the prediction, for comparison with a candidate that was only predicted.
    if (!are_alike && candidate.is_tried()) {
      return fmt::format("{}: {:.2f} ms predicted, {:.2f} when tried", name, predicted, tried);
    }
    if (!are_alike) return fmt::format("{}: {:.2f} ms predicted, not tried", name, predicted);
    return fmt::format("{}: {:.2f} ms{}", name, 1e3 * candidate.seconds(),
                       candidate.is_tried() ? " when tried" : "");
  };
  if (other == nullptr) return named(choice.chosen) + ": chosen";
  if (!choice.chosen.is_dense) return named(*other) + "; " + named(choice.chosen) + ": chosen";
  const double more = 1e3 * (other->seconds() - choice.chosen.seconds());
  const std::string what = !are_alike ? "most likely not be faster"
                           : more < 0 ? fmt::format("save only {:.2f} ms", -more)
                                      : fmt::format("cost {:.2f} ms more", more);
  return fmt::format("do not compress: it would {} ({}; {})", what, named(*other),
                     named(choice.chosen));
}

// Does a narrow field carry the sum of several ranks, not shares of the mean? Under other plans it
// carries a gradient or the mean, and two_shot sends no more bytes than plans that add on the way.
bool may_overflow(const PlanRequest& request, const Plan& plan) {
  std::vector<SumRules> rules;
  rules.reserve(request.codecs.size());
  for (const CodecFacts& codec : request.codecs)
    rules.push_back({.takes_partial_sums = codec.do_sums_fit()});
  if (request.world == 1) return false;
  if (find_refusal(plan, rules)) return true;
  return std::ranges::any_of(plan.ranks[0].tasks, [&](const Task& task) {
    return task.kind == TaskKind::Join &&
           !rules[plan.groups[task.groups[0]].codec].takes_partial_sums;
  });
}

class Choice {
 public:
  Choice(const PlanRequest& request, const CostInputs& inputs, const ChoiceSpace& space)
      : request_(request), inputs_(inputs), space_(space) {}

  Result<PlanChoice> run() {
    for (const std::string_view plan : plan_names()) {
      if (plan == "hierarchical" && request_.ranks_per_machine == 1) continue;
      CINCH_TRY(try_pieces(std::string(plan)));
    }
    return finish();
  }

 private:
  // The sizes up to the first that cuts nothing; larger ones give the same plan.
  std::vector<std::uint64_t> piece_sizes() const {
    std::vector<std::uint64_t> sizes = space_.piece_bytes;
    std::ranges::sort(sizes, std::greater<>());
    const std::uint64_t all = gradient_bytes(request_);
    while (sizes.size() > 1 && sizes[1] >= all) sizes.erase(sizes.begin());
    while (sizes.size() > 1 && num_tasks(request_, sizes.back()) > kMostTasks) sizes.pop_back();
    return sizes;
  }

  std::vector<LengthPolicy> length_policies(bool is_dense) const {
    const bool are_known =
        is_dense || std::ranges::all_of(request_.tensors, [&](const PlanTensor& tensor) {
          return tensor.codec == kDense || request_.codecs[tensor.codec].has_fixed_size;
        });
    return are_known ? std::vector{LengthPolicy::Auto} : space_.lengths;
  }

  Status try_pieces(const std::string& plan) {
    for (const std::uint64_t piece_bytes : piece_sizes()) {
      for (const bool is_dense : {true, false}) {
        const bool is_possible = is_dense ? is_dense_possible() : is_compressed(request_);
        if (!is_possible) continue;
        for (const LengthPolicy lengths : length_policies(is_dense)) {
          CINCH_TRY(try_one({plan, piece_bytes, lengths, is_dense, {}}));
        }
      }
    }
    return Ok{};
  }

  bool is_dense_possible() const {
    return !is_compressed(request_) || (space_.may_be_dense && may_be_dense(request_));
  }

  Status try_one(PlanCandidate candidate) {
    const auto cost = TRY(predict_useful(request_of(request_, candidate), inputs_));
    if (!cost) return Ok{};
    candidate.cost = *cost;
    found_.candidates.push_back(std::move(candidate));
    return Ok{};
  }

  PlanChoice finish() {
    const double least =
        std::ranges::min_element(found_.candidates, {}, [](const PlanCandidate& c) {
          return c.cost.seconds;
        })->cost.seconds;
    found_.chosen = *std::ranges::find_if(found_.candidates, [least](const PlanCandidate& c) {
      return c.cost.seconds <= kTie * least;
    });
    std::ranges::sort(found_.candidates, {}, [](const PlanCandidate& c) { return c.cost.seconds; });
    found_.reason = reason_of(found_);
    return std::move(found_);
  }

  const PlanRequest& request_;
  const CostInputs& inputs_;
  const ChoiceSpace& space_;
  PlanChoice found_;
};

}  // namespace

Result<std::optional<PlanCost>> predict_useful(const PlanRequest& request,
                                               const CostInputs& inputs) {
  auto taken = TRY(build_plan_if_taken(request));
  const std::optional<Plan> plan = std::move(taken);
  if (!plan) return std::nullopt;
  const bool has_all_reduce = std::ranges::any_of(plan->ranks[0].tasks, [](const Task& task) {
    return task.kind == TaskKind::Exchange && task.exchange == ExchangeKind::AllReduce;
  });
  if (request.plan == "allreduce" && request.routes.size() <= 1 && !has_all_reduce)
    return std::nullopt;
  if (is_compressed(request) && may_overflow(request, *plan)) return std::nullopt;
  return TRY(estimate_cost(*plan, inputs));
}

// A program that does not take partial sums, such as a vote, computes something else from the sum
// than a mean; so does one whose sums another program carries, such as momentum.
bool may_be_dense(const PlanRequest& request) {
  return std::ranges::all_of(request.tensors, [&](const PlanTensor& tensor) {
    if (tensor.codec == kDense) return true;
    const CodecFacts& codec = request.codecs[tensor.codec];
    return codec.takes_partial_sums && codec.carrier.kind == CarrierKind::Itself;
  });
}

void add_by_group(PlanChoice& choice, const PlanRequest& by_group, const PlanCost& cost) {
  PlanCandidate candidate{
      .plan = "routes", .routes = by_group.routes, .route_of = by_group.route_of, .cost = cost};
  for (const PlanTensor& tensor : by_group.tensors) {
    candidate.is_exact.push_back(tensor.codec == kDense);
  }
  candidate.is_dense = !is_compressed(by_group);
  const auto later = std::ranges::find_if(choice.candidates, [&](const PlanCandidate& each) {
    return each.cost.seconds > cost.seconds;
  });
  choice.candidates.insert(later, candidate);
  if (kTie * cost.seconds >= choice.chosen.cost.seconds) return;
  choice.chosen = std::move(candidate);
  choice.reason = reason_of(choice);
}

Result<PlanChoice> choose_plan(const PlanRequest& request, const CostInputs& inputs,
                               const ChoiceSpace& space) {
  return Choice(request, inputs, space).run();
}

std::vector<std::size_t> worth_trying(const PlanChoice& choice, double seconds) {
  std::vector<std::size_t> places;
  double taken = 0;
  // Returns false if there is no time for the candidate.
  const auto add = [&](std::size_t place) {
    if (std::ranges::find(places, place) != places.end()) return true;
    const double with = taken + kStepsTried * choice.candidates[place].cost.seconds;
    if (with > seconds && !places.empty()) return false;
    taken = with;
    places.push_back(place);
    return true;
  };
  const auto first = [&](const auto& is_wanted) {
    const auto found = std::ranges::find_if(choice.candidates, is_wanted);
    return static_cast<std::size_t>(found - choice.candidates.begin());
  };
  add(first([&](const PlanCandidate& c) {
    return describe_candidate(c) == describe_candidate(choice.chosen);
  }));
  const double least = choice.candidates.front().cost.seconds;
  const double most = least + std::max(kUncertainShare * least, kUncertainSeconds);
  const auto is_near = [&](std::size_t place) {
    return place < choice.candidates.size() && choice.candidates[place].cost.seconds <= most;
  };
  // Whether to compress matters more than how.
  const std::size_t other =
      first([&](const PlanCandidate& c) { return c.is_dense != choice.chosen.is_dense; });
  if (is_near(other)) add(other);
  for (std::size_t i = 0; is_near(i) && places.size() < kMostTried; ++i) {
    if (!add(i)) break;
  }
  return places.size() > 1 ? places : std::vector<std::size_t>();
}

void choose_tried(PlanChoice& choice) {
  const PlanCandidate* fastest = nullptr;
  for (const PlanCandidate& each : choice.candidates) {
    if (!each.is_tried()) continue;
    if (fastest == nullptr || each.tried_seconds < fastest->tried_seconds) fastest = &each;
  }
  if (fastest == nullptr) return;
  choice.chosen = *fastest;
  choice.reason = reason_of(choice);
}

PlanRequest request_of(PlanRequest request, const PlanCandidate& candidate) {
  request.plan = candidate.plan;
  request.piece_bytes = candidate.piece_bytes;
  request.lengths = candidate.lengths;
  request.routes = candidate.routes;
  request.route_of = candidate.route_of;
  for (std::size_t t = 0; t < candidate.is_exact.size(); ++t) {
    if (candidate.is_exact[t]) request.tensors[t].codec = kDense;
  }
  if (candidate.is_dense) {
    for (PlanTensor& tensor : request.tensors) tensor.codec = kDense;
  }
  return request;
}

std::string describe_candidate(const PlanCandidate& candidate) {
  if (!candidate.routes.empty()) return "a route for each group of tensors";
  std::string text = candidate.is_dense ? "dense " : "";
  text += fmt::format("{} in {} KiB pieces", candidate.plan, candidate.piece_bytes >> 10);
  if (candidate.lengths == LengthPolicy::Padded) text += ", padded";
  if (candidate.lengths == LengthPolicy::Exchanged) text += ", lengths first";
  return text;
}

}  // namespace cinch::rt
