// Rank 0 measures programs, predicts plans and tells the others which to try. All ranks know the
// times of trials, so all choose the same plan.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "runtime/autoplan/auto_plan.h"
#include "runtime/core/hash.h"
#include "runtime/core/numbers/number_range.h"
#include "runtime/planner/exchange_options.h"
#include "runtime/planner/network/network_model.h"
#include "runtime/planner/routes/step_routes.h"
#include "runtime/sync/step_tensors.h"

namespace cinch::rt {
namespace {

// Longer than measuring programs and predicting takes; a rank 0 that fails says so at once.
constexpr std::chrono::minutes kChoiceLimit{10};
// Limits of measurements that are made on the way to a step.
constexpr double kNetworkSeconds = 1, kCodecSeconds = 0.4, kDenseSeconds = 0.1;
constexpr std::uint64_t kLargestBytes = 4 << 20;
constexpr std::size_t kMostTried = 16;

// Rank 0's message to the others: how many candidates there are. The first one is used unless
// trials decide otherwise.
struct Told {
  std::uint64_t count = 0;
  std::uint64_t num_routes = 0;  // of the plan by group, which follows; 0: there is none
  struct Candidate {
    std::uint64_t plan = 0, piece_bytes = 0, lengths = 0, is_dense = 0;
  } candidates[kMostTried];
};

constexpr std::size_t kWordsOfRoute = 5;
constexpr std::uint64_t kByGroup = UINT64_MAX;  // instead of a plan

std::uint64_t index_of_plan(std::string_view plan) {
  return static_cast<std::uint64_t>(std::ranges::find(plan_names(), plan) - plan_names().begin());
}

std::string_view plan_of_index(std::uint64_t index) {
  return plan_names()[index % plan_names().size()];
}

Told::Candidate words_of(const PlanCandidate& candidate) {
  return {candidate.routes.empty() ? index_of_plan(candidate.plan) : kByGroup,
          candidate.piece_bytes, static_cast<std::uint64_t>(candidate.lengths),
          candidate.is_dense ? 1U : 0U};
}

class AutoChoice {
 public:
  AutoChoice(const AutoPlanInputs& inputs, Transport& transport)
      : inputs_(inputs), transport_(transport) {}

  Result<AutoPlan> run() {
    CINCH_TRY(agree());
    const auto on_machine = TRY(ranks_of_machine());
    if (inputs_.measures_network) {
      auto model = TRY(
          measure_network(transport_, {kLargestBytes, kNetworkSeconds, inputs_.session.timeout}));
      network_ = KnownNetwork{std::move(model), {}};
    }
    if (transport_.rank() == 0) {
      if (Status status = decide(on_machine); !status) {
        transport_.abandon(status.error());
        return tl::unexpected<Error>(status.error());
      }
    }
    Exchange exchange{ExchangeKind::Broadcast};
    exchange.output = {reinterpret_cast<std::uint8_t*>(&told_), sizeof told_};
    // Rank 0 measures each program and predicts all plans meanwhile.
    CINCH_TRY(exchange_now(transport_, exchange, inputs_.session.timeout + kChoiceLimit,
                           "choosing a plan"));
    CINCH_TRY(share_routes());
    return settle();
  }

 private:
  // Checks that ranks agree on the facts that sizes depend on. Must come before any other exchange.
  Status agree() {
    std::vector<CommonFact> facts = {{"plan", "auto"},
                                     {"network", inputs_.measures_network ? "measured" : "known"},
                                     {"ready times", inputs_.ready_seconds.empty() ? "no" : "yes"}};
    for (const PlanTensor& tensor : inputs_.request.tensors) {
      const std::string codec =
          tensor.codec == kDense ? "f32" : inputs_.request.codecs[tensor.codec].name;
      facts.push_back({"tensor", fmt::format("{} of {} x {}, {}", tensor.name, tensor.rows,
                                             tensor.cols, codec)});
    }
    return agree_on(facts, transport_, inputs_.session.timeout);
  }

  // How many ranks run on this rank's machine: those with the same host name.
  Result<std::uint32_t> ranks_of_machine() {
    std::array<char, 256> name{};
    (void)gethostname(name.data(), name.size() - 1);
    const std::uint64_t own = hash64(std::string_view(name.data()));
    std::vector<std::uint64_t> all(transport_.world());
    std::vector<ByteRange> parts;
    parts.reserve(all.size());
    for (std::uint64_t rank = 0; rank < all.size(); ++rank) parts.push_back({8 * rank, 8});
    Exchange exchange{.kind = ExchangeKind::AllGather,
                      .input = {reinterpret_cast<const std::uint8_t*>(&own), sizeof own},
                      .output = {reinterpret_cast<std::uint8_t*>(all.data()), 8 * all.size()},
                      .received = parts};
    CINCH_TRY(exchange_now(transport_, exchange, inputs_.session.timeout, "choosing a plan"));
    return static_cast<std::uint32_t>(std::ranges::count(all, own));
  }

  // The codec's largest tensor, which represents all; none if no tensor has the codec.
  std::optional<std::size_t> sample_of(std::uint32_t codec) const {
    std::optional<std::size_t> found;
    std::int64_t most = -1;
    for (std::size_t t = 0; t < inputs_.request.tensors.size(); ++t) {
      const PlanTensor& tensor = inputs_.request.tensors[t];
      if (tensor.codec != codec || tensor.num_elems() <= most) continue;
      found = t;
      most = tensor.num_elems();
    }
    return found;
  }

  std::int64_t largest() const {
    std::int64_t elems = 0;
    for (const PlanTensor& tensor : inputs_.request.tensors) {
      elems = std::max(elems, tensor.num_elems());
    }
    return elems;
  }

  // Routes for groups of tensors may lead over the CPUs of ranks that have a GPU.
  Status measure_cpus(SpeedOptions speed, CostInputs& costs) const {
    const auto& programs = speed.session.programs;
    const bool can_move = speed.session.device && !inputs_.ready_seconds.empty() &&
                          programs.size() == inputs_.request.codecs.size() &&
                          std::ranges::find(programs, nullptr) == programs.end();
    if (!can_move) return Ok{};
    CpuSpeeds cpus;
    CINCH_TRY(measure_copies(*speed.session.device, largest(), cpus));
    speed.session.device.reset();
    CostInputs measured;
    CINCH_TRY(measure_codecs(speed, measured));
    cpus.codecs = std::move(measured.codecs);
    cpus.dense = std::move(measured.dense);
    cpus.clear = std::move(measured.clear);
    cpus.threads = inputs_.session.threads;
    costs.on_cpus = std::move(cpus);
    return Ok{};
  }

  Status measure_codecs(SpeedOptions speed, CostInputs& costs) const {
    const std::int64_t elems = largest();
    speed.seconds = kDenseSeconds;
    CINCH_TRY(measure_dense(elems, speed, costs));
    speed.seconds = kCodecSeconds;
    for (std::uint32_t codec = 0; codec < inputs_.request.codecs.size(); ++codec) {
      CodecSpeed& measured = costs.codecs.emplace_back();
      // The codec whose sums this one carries, or the codec itself.
      const auto& codecs = inputs_.request.codecs;
      const auto carried = std::ranges::find(codecs, codec, &CodecFacts::carrier_codec);
      const std::optional<std::size_t> t = sample_of(
          carried == codecs.end() ? codec : static_cast<std::uint32_t>(carried - codecs.begin()));
      if (!t) continue;
      const PlanTensor& tensor = inputs_.request.tensors[*t];
      measured = TRY(measure_codec(codec, inputs_.gradients[*t], tensor.rows, tensor.cols, speed));
    }
    return Ok{};
  }

  Status decide(std::uint32_t ranks_per_machine) {
    if (!inputs_.measures_network) network_ = inputs_.network;
    if (!network_) return fail(ErrorKind::InvalidArgument, "nothing is known of the network");
    const bool is_on_device = inputs_.session.device.has_value();
    CostInputs costs =
        costs_on(*network_, ranks_per_machine, is_on_device ? 0 : inputs_.session.threads);
    costs.ready_seconds = inputs_.ready_seconds;
    costs.is_on_device = is_on_device;
    const SpeedOptions speed{
        .session = inputs_.session, .copies = copies_on(costs), .step = inputs_.step};
    const Status measured = measure_codecs(speed, costs);
    // One rank measures, and some programs need more (`allgather(g)[1]`): nothing is predicted
    // then.
    if (!measured && measured.error().kind == ErrorKind::CheckFailed) {
      PlanCandidate gathered{.plan = "allgather",
                             .piece_bytes = inputs_.request.piece_bytes,
                             .lengths = inputs_.request.lengths};
      told_.candidates[0] = words_of(gathered);
      told_.count = 1;
      return Ok{};
    }
    CINCH_TRY(measured);
    CINCH_TRY(measure_cpus(speed, costs));
    choice_ = TRY(choose_plan(inputs_.request, costs, inputs_.space));
    if (!costs.ready_seconds.empty() && inputs_.space.may_be_dense &&
        may_be_dense(inputs_.request)) {
      CINCH_TRY(add_routes(costs));
    }
    tried_ = worth_trying(*choice_, inputs_.trial_seconds);
    told_.candidates[0] = words_of(choice_->chosen);
    told_.count = std::clamp<std::size_t>(tried_.size(), 1, kMostTried);
    for (std::size_t i = 1; i < told_.count; ++i) {
      told_.candidates[i] = words_of(choice_->candidates[tried_[i]]);
    }
    return Ok{};
  }

  // Where tensors become ready one by one, each group of them may take a route of its own.
  Status add_routes(const CostInputs& costs) {
    StepRoutesRequest request{.plans = inputs_.request, .costs = costs};
    if (inputs_.space.piece_bytes.size() == 1) request.piece_bytes = inputs_.space.piece_bytes;
    for (PlanTensor& tensor : request.plans.tensors) {
      request.codecs.emplace_back();
      if (tensor.codec != kDense) request.codecs.back().push_back(tensor.codec);
    }
    // Too many tensors, say: the other candidates remain.
    const auto planned = plan_by_group(request);
    if (!planned) return Ok{};
    const PlannedStep& found = *planned;
    for (const PlanRoute& route : found.request.routes) {
      words_of_routes_.push_back(index_of_plan(route.plan));
      words_of_routes_.push_back(route.piece_bytes);
      words_of_routes_.push_back(static_cast<std::uint64_t>(route.lengths));
      words_of_routes_.push_back(static_cast<std::uint64_t>(route.device));
      words_of_routes_.push_back(word_of_option(route.option));
    }
    told_.num_routes = found.request.routes.size();
    for (std::size_t t = 0; t < found.request.tensors.size(); ++t) {
      const bool is_dense = found.request.tensors[t].codec == kDense;
      words_of_routes_.push_back(2 * std::uint64_t{found.request.route_of[t]} + (is_dense ? 1 : 0));
    }
    if (choice_) add_by_group(*choice_, found.request, found.cost);
    return Ok{};
  }

  // Rank 0 tells the routes of the plan by group, if it has one.
  Status share_routes() {
    if (told_.num_routes == 0) return Ok{};
    const std::size_t tensors = inputs_.request.tensors.size();
    if (told_.num_routes > tensors) return invalid("more routes than tensors");
    words_of_routes_.resize(kWordsOfRoute * told_.num_routes + tensors);
    Exchange exchange{ExchangeKind::Broadcast};
    exchange.output = {reinterpret_cast<std::uint8_t*>(words_of_routes_.data()),
                       sizeof(std::uint64_t) * words_of_routes_.size()};
    return exchange_now(transport_, exchange, inputs_.session.timeout, "choosing a plan");
  }

  PlanCandidate candidate_of(const Told::Candidate& words) const {
    if (words.plan == kByGroup) return candidate_by_group();
    PlanCandidate candidate{.plan = std::string(plan_of_index(words.plan)),
                            .piece_bytes = words.piece_bytes,
                            .lengths = static_cast<LengthPolicy>(words.lengths % 3),
                            .is_dense = words.is_dense != 0};
    return candidate;
  }

  // 0: the request's; else one more than its place among all.
  std::uint64_t word_of_option(const ExchangeOption& option) const {
    if (option == inputs_.request.option) return 0;
    const auto all = all_exchange_options();
    return static_cast<std::uint64_t>(std::ranges::find(all, option) - all.begin()) + 1;
  }
  ExchangeOption option_of_word(std::uint64_t word) const {
    if (word == 0) return inputs_.request.option;
    const auto all = all_exchange_options();
    return word > all.size() ? inputs_.request.option : all[word - 1];
  }

  PlanCandidate candidate_by_group() const {
    PlanCandidate candidate{.plan = "routes"};
    const std::uint64_t* next = words_of_routes_.data();
    for (std::uint64_t i = 0; i < told_.num_routes; ++i, next += kWordsOfRoute) {
      candidate.routes.push_back({std::string(plan_of_index(next[0])), next[1],
                                  static_cast<LengthPolicy>(next[2] % 3), option_of_word(next[4]),
                                  static_cast<OptionDevice>(next[3] % 2)});
    }
    for (std::size_t t = 0; t < inputs_.request.tensors.size(); ++t) {
      candidate.route_of.push_back(static_cast<std::uint32_t>(next[t] / 2));
      candidate.is_exact.push_back(next[t] % 2 == 1);
    }
    return candidate;
  }

  Result<AutoPlan> settle() {
    const std::size_t count = std::clamp<std::size_t>(told_.count, 1, kMostTried);
    std::size_t fastest = 0;
    if (count > 1) {
      const auto seconds = TRY(try_first(count));
      fastest = static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin());
      for (std::size_t i = 0; choice_ && i < count; ++i) {
        choice_->candidates[tried_[i]].tried_seconds = seconds[i];
      }
      if (choice_) choose_tried(*choice_);
    }
    PlanRequest request = request_of(inputs_.request, candidate_of(told_.candidates[fastest]));
    return AutoPlan{std::move(request), std::move(choice_)};
  }

  Result<std::vector<double>> try_first(std::size_t count) {
    std::vector<std::shared_ptr<const Plan>> plans;
    for (std::size_t i = 0; i < count; ++i) {
      auto plan = TRY(build_plan(request_of(inputs_.request, candidate_of(told_.candidates[i]))));
      plans.push_back(std::make_shared<Plan>(std::move(plan)));
    }
    TrialOptions options{
        .session = inputs_.session, .step = inputs_.step, .seconds = inputs_.trial_seconds};
    options.ready_seconds = inputs_.ready_seconds;
    return try_plans(plans, inputs_.gradients, options, transport_);
  }

  const AutoPlanInputs& inputs_;
  Transport& transport_;
  std::optional<KnownNetwork> network_;  // measured or given
  std::optional<PlanChoice> choice_;     // only on rank 0
  std::vector<std::size_t> tried_;       // only on rank 0: indices of its candidates
  Told told_;
  // Routes of the plan by group, kWordsOfRoute each, and by tensor 2 * its route, + 1 if exact.
  std::vector<std::uint64_t> words_of_routes_;
};

}  // namespace

CostInputs costs_on(const KnownNetwork& network, std::uint32_t ranks_per_machine,
                    std::uint32_t threads) {
  CostInputs costs;
  costs.cores = std::max(1U, std::thread::hardware_concurrency());
  costs.threads = std::min<double>(threads, costs.cores);
  costs.ranks_per_machine = ranks_per_machine;
  // The time that exchanges take on their threads is not latency. It was measured with all ranks
  // running on the machine's cores.
  costs.network = network.model;
  const double share = std::min(1.0, costs.cores / costs.ranks_per_machine);
  for (std::size_t i = 0; i < costs.exchange_work.size(); ++i) {
    Line& line = costs.network.lines[i].line;
    const double gap = std::min(costs.network.gaps[i], line.base);
    line.base -= gap;
    costs.exchange_work[i] = {share * gap, share * network.copying[i]};
  }
  Line& within = costs.network.within.line;
  within.base -= std::min(costs.network.within_gap, within.base);
  return costs;
}

std::uint32_t copies_on(const CostInputs& costs) {
  if (costs.threads == 0) return 1;
  return static_cast<std::uint32_t>(
      std::clamp<double>(costs.cores / costs.threads, 1, costs.ranks_per_machine));
}

bool has_choice(const PlanRequest& request) {
  return std::ranges::none_of(
      request.codecs, [](const CodecFacts& codec) { return codec.has_sync && !codec.sync_rounds; });
}

AutoPlan without_choice(PlanRequest request) {
  request.plan = "allgather";
  return {std::move(request), std::nullopt};
}

Result<AutoPlan> choose_auto_plan(const AutoPlanInputs& inputs, Transport& transport) {
  if (!has_choice(inputs.request)) return without_choice(inputs.request);
  return AutoChoice(inputs, transport).run();
}

// The number of steps follows from times that all ranks share, so it is the same on all of them.

namespace {

// After a first step, which uses memory for the first time.
constexpr std::size_t kFirstSteps = 3;
constexpr double kMostSteps = 12;
constexpr std::size_t kTurns = 2;  // for those that could be the fastest

class Trials {
 public:
  Trials(std::span<const std::shared_ptr<const Plan>> plans,
         std::span<const ConstTensorView> gradients, const TrialOptions& options,
         Transport& transport)
      : plans_(plans),
        gradients_(gradients),
        options_(options),
        transport_(transport),
        seconds_(plans.size()) {
    for (const ConstTensorView& gradient : gradients) {
      outputs_.emplace_back(static_cast<std::size_t>(gradient.num_elems));
    }
    updates_.assign(outputs_.begin(), outputs_.end());
  }

  // Tries each plan a few times. Then tries those that could be the fastest again, in turns from
  // the last and from the first, so that a temporary slowdown of the machine does not hit the same
  // plan.
  Result<std::vector<double>> run() {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      CINCH_TRY(take_steps(i, kFirstSteps));
    }
    std::vector<std::size_t> close;
    for (std::size_t plan = 0; plan < seconds_.size(); ++plan) {
      if (!is_clearly_slower(plan)) close.push_back(plan);
    }
    for (std::size_t turn = 0; turn < kTurns && close.size() > 1; ++turn) {
      std::ranges::reverse(close);
      CINCH_TRY(take_turn(close));
    }
    std::vector<double> medians;
    medians.reserve(seconds_.size());
    for (const auto& of_plan : seconds_) medians.push_back(median(of_plan));
    return medians;
  }

 private:
  Status take_turn(const std::vector<std::size_t>& close) {
    const double share = options_.seconds / 2 / static_cast<double>(kTurns * close.size());
    for (const std::size_t plan : close) {
      const double fitting = share / std::max(median(seconds_[plan]), 1e-6);
      const auto steps = static_cast<std::size_t>(std::clamp(fitting, 1.0, kMostSteps));
      CINCH_TRY(take_steps(plan, steps));
    }
    return Ok{};
  }

  // Compares fastest steps: a step that something else slowed down says nothing about the plan.
  bool is_clearly_slower(std::size_t plan) const {
    return std::ranges::min(seconds_[plan]) > options_.clearly_slower * fastest_;
  }

  Status take_steps(std::size_t plan, std::size_t number) {
    SyncOptions session_options = options_.session;
    session_options.plan = plans_[plan];
    if (session_options.device) session_options.device->has_tensors = false;
    const auto session = TRY(SyncSession::open(session_options, transport_));
    double meeting = 0;
    Status status = take_largest(transport_, {&meeting, 1}, options_.session.timeout);
    for (std::size_t i = 0; i <= number && status; ++i) {
      status = take_step(*session);
      if (!status) return status;
      double seconds = session->times().end - session->times().begin;
      status = take_largest(transport_, {&seconds, 1}, options_.session.timeout);
      if (i == 0) continue;
      seconds_[plan].push_back(seconds);
      if (i > 1 && is_clearly_slower(plan)) break;
    }
    if (status) fastest_ = std::min(fastest_, median(seconds_[plan]));
    return status;
  }

  Status take_step(SyncSession& session) {
    CINCH_TRY(session.make_up_inputs(gradients_));
    const auto& ready = options_.ready_seconds;
    if (ready.empty()) return session.step(gradients_, updates_, options_.step);
    std::vector<std::uint32_t> order(ready.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t tensor) { return ready[tensor]; });
    const auto begin = std::chrono::steady_clock::now();
    CINCH_TRY(session.begin_step(options_.step));
    for (const std::uint32_t tensor : order) {
      const std::chrono::duration<double> after(ready[tensor]);
      std::this_thread::sleep_until(
          begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(after));
      if (!session.set_ready(tensor, gradients_[tensor], updates_[tensor])) break;
    }
    const auto finished = session.finish_step();
    return finished ? Status(Ok{}) : tl::unexpected<Error>(finished.error());
  }

  std::span<const std::shared_ptr<const Plan>> plans_;
  std::span<const ConstTensorView> gradients_;
  const TrialOptions& options_;
  Transport& transport_;
  std::vector<std::vector<float>> outputs_;  // by tensor
  std::vector<TensorView> updates_;
  std::vector<std::vector<double>> seconds_;  // by plan: seconds of each step
  double fastest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Result<std::vector<double>> try_plans(std::span<const std::shared_ptr<const Plan>> plans,
                                      std::span<const ConstTensorView> gradients,
                                      const TrialOptions& options, Transport& transport) {
  return Trials(plans, gradients, options, transport).run();
}

}  // namespace cinch::rt
