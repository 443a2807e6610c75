// Bodies of plan_choice.h.
#include "compiler/driver/plan_choice.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "compiler/driver/exit_code.h"
#include "compiler/driver/output_file.h"
#include "runtime/collective/loopback.h"
#include "runtime/core/hash.h"
#include "runtime/planner/codec_speed.h"
#include "runtime/planner/network_probe.h"

namespace cinch::driver {

namespace {

// Longer than measuring programs and trying plans takes; a rank 0 that fails says so at once.
constexpr std::chrono::minutes kChoiceLimit{10};

using nlohmann::json;

// What is measured on the way to a step may not take long.
constexpr double kNetworkSeconds = 1, kCodecSeconds = 0.4, kDenseSeconds = 0.1;
constexpr double kOverheadSeconds = 0.2;
constexpr std::uint64_t kLargestBytes = 4 << 20;

std::chrono::milliseconds timeout_of(const SyncCommandOptions& options) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.timeout_seconds));
}

rt::NetworkModel read_network(const SyncCommandOptions& options, std::uint32_t world) {
  rt::NetworkModel model =
      value_or_throw(rt::network_from_json(read_text_file(options.probe)), options.probe);
  if (model.transport == options.transport && model.world == world) return model;
  throw CommandError(
      ExitCode::AtFault,
      fmt::format("{}: measured over {} with {} ranks, not over {} with {}", options.probe,
                  model.transport, model.world, options.transport, world));
}

rt::NetworkModel measure(const SyncCommandOptions& options, rt::Transport& transport) {
  return value_or_throw(
      rt::measure_network(transport, {kLargestBytes, kNetworkSeconds, timeout_of(options)}));
}

// Ranks on links without a shape.
rt::NetworkModel measure_loopback(const rt::ProbeOptions& probe, std::uint32_t ranks) {
  rt::LoopbackWorld world(ranks);
  std::vector<rt::Result<rt::NetworkModel>> models(ranks, rt::NetworkModel());
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto transport = world.transport(rank);
      models[rank] = rt::measure_network(*transport, probe);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return value_or_throw(std::move(models[0]));
}

using SecondsPerByte = std::array<double, rt::kMeasuredKinds.size()>;

// `copying`: of the threads that exchange, beside what links take.
rt::NetworkModel loopback_network(const SyncCommandOptions& options, std::uint32_t world,
                                  SecondsPerByte& copying) {
  if (!options.probe.empty()) return read_network(options, world);
  const rt::LinkShape shape{options.latency_us / 1e6, options.megabits_per_second * 1e6 / 8};
  const std::chrono::milliseconds timeout = timeout_of(options);
  // On links without a shape threads meet and copy: all of it is work.
  const rt::NetworkModel threads = measure_loopback(
      {kLargestBytes, shape.is_shaped() ? kOverheadSeconds : kNetworkSeconds, timeout}, world);
  rt::NetworkModel model = rt::shaped_network(world, shape);
  for (std::size_t i = 0; i < model.lines.size(); ++i) {
    const rt::Line& work = threads.lines[i].line;
    model.gaps[i] = work.base;
    model.lines[i].line.base += work.base;
    copying[i] = work.slope;
  }
  return model;
}

// What exchanges take of their threads, which is no latency. It was measured with all ranks on the
// machine's cores.
void set_exchange_work(const SecondsPerByte& copying, rt::CostInputs& inputs) {
  const double share = std::min(1.0, inputs.cores / inputs.ranks_per_machine);
  for (std::size_t i = 0; i < inputs.exchange_work.size(); ++i) {
    rt::Line& line = inputs.network.lines[i].line;
    const double gap = std::min(inputs.network.gaps[i], line.base);
    line.base -= gap;
    inputs.exchange_work[i] = {share * gap, share * copying[i]};
  }
}

// How many ranks have the machine of this one: those whose hosts have its name.
std::uint32_t ranks_of_machine(const SyncCommandOptions& options, rt::Transport& transport) {
  std::array<char, 256> name{};
  (void)gethostname(name.data(), name.size() - 1);
  const std::uint64_t own = hash64(std::string_view(name.data()));
  std::vector<std::uint64_t> all(transport.world());
  std::vector<rt::ByteRange> parts;
  parts.reserve(all.size());
  for (std::uint64_t rank = 0; rank < all.size(); ++rank) parts.push_back({8 * rank, 8});
  rt::Exchange exchange{rt::ExchangeKind::AllGather};
  exchange.input = {reinterpret_cast<const std::uint8_t*>(&own), sizeof own};
  exchange.output = {reinterpret_cast<std::uint8_t*>(all.data()), 8 * all.size()};
  exchange.received = parts;
  value_or_throw(rt::exchange_now(transport, exchange, timeout_of(options)));
  return static_cast<std::uint32_t>(std::ranges::count(all, own));
}

// The largest tensor of the codec stands for all; none where nothing has it.
std::optional<std::size_t> sample_of(const ChoiceSubject& subject, std::uint32_t codec) {
  std::optional<std::size_t> found;
  std::int64_t most = -1;
  for (std::size_t t = 0; t < subject.request.tensors.size(); ++t) {
    const rt::PlanTensor& tensor = subject.request.tensors[t];
    if (tensor.codec != codec || tensor.num_elems() <= most) continue;
    found = t;
    most = tensor.num_elems();
  }
  return found;
}

rt::CostInputs cost_inputs(const SyncCommandOptions& options, const ChoiceSubject& subject,
                           rt::NetworkModel network, const SecondsPerByte& copying,
                           std::uint32_t ranks_per_machine) {
  rt::CostInputs inputs;
  inputs.network = std::move(network);
  inputs.cores = std::max(1U, std::thread::hardware_concurrency());
  inputs.threads = std::min<double>(subject.threads, inputs.cores);
  inputs.ranks_per_machine = ranks_per_machine;
  set_exchange_work(copying, inputs);
  rt::SpeedOptions speed;
  speed.world = subject.request.world;
  speed.threads = subject.threads;
  speed.copies = static_cast<std::uint32_t>(
      std::clamp<double>(inputs.cores / inputs.threads, 1, ranks_per_machine));
  speed.step = options.step;
  std::int64_t elems = 0;
  for (const rt::PlanTensor& tensor : subject.request.tensors) {
    elems = std::max(elems, tensor.num_elems());
  }
  speed.seconds = kDenseSeconds;
  value_or_throw(rt::measure_dense(elems, speed, inputs));
  speed.seconds = kCodecSeconds;
  for (std::uint32_t codec = 0; codec < subject.programs.size(); ++codec) {
    const std::optional<std::size_t> t = sample_of(subject, codec);
    if (!t) {
      inputs.codecs.emplace_back();
      continue;
    }
    const rt::PlanTensor& tensor = subject.request.tensors[*t];
    inputs.codecs.push_back(value_or_throw(
        rt::measure_codec(subject.programs[codec], subject.request.codecs[codec].can_cut,
                          subject.gradients[*t], tensor.rows, tensor.cols, speed)));
  }
  return inputs;
}

rt::ChoiceSpace space_of(const SyncCommandOptions& options) {
  rt::ChoiceSpace space;
  if (options.piece_bytes) space.piece_bytes = {*options.piece_bytes};
  if (options.lengths == "padded") space.lengths = {rt::LengthPolicy::Padded};
  if (options.lengths == "exchanged") space.lengths = {rt::LengthPolicy::Exchanged};
  return space;
}

bool has_sync(const rt::PlanRequest& request) {
  return std::ranges::any_of(request.codecs, [](const rt::CodecFacts& c) { return c.has_sync; });
}

// A program with a `sync` runs that under every plan.
ChosenPlan with_sync(const ChoiceSubject& subject) {
  ChosenPlan chosen{subject.request, std::nullopt};
  chosen.request.plan = "allgather";
  return chosen;
}

rt::PlanChoice choose(const SyncCommandOptions& options, const ChoiceSubject& subject,
                      const rt::CostInputs& inputs) {
  return value_or_throw(rt::choose_plan(subject.request, inputs, space_of(options)));
}

// What rank 0 tells the others.
using ChoiceWords = std::array<std::uint64_t, 4>;

ChoiceWords words_of(const rt::PlanCandidate& candidate) {
  const auto names = rt::plan_names();
  const auto plan = std::ranges::find(names, candidate.plan) - names.begin();
  return {static_cast<std::uint64_t>(plan), candidate.piece_bytes,
          static_cast<std::uint64_t>(candidate.lengths), candidate.is_dense ? 1U : 0U};
}

rt::PlanCandidate candidate_of(const ChoiceWords& words) {
  const auto names = rt::plan_names();
  return {std::string(names[words[0] % names.size()]),
          words[1],
          static_cast<rt::LengthPolicy>(words[2] % 3),
          words[3] != 0,
          {}};
}

json candidate_json(const rt::PlanCandidate& candidate) {
  const auto ms = [](double seconds) { return seconds * 1e3; };
  const char* const lengths = candidate.lengths == rt::LengthPolicy::Padded      ? "padded"
                              : candidate.lengths == rt::LengthPolicy::Exchanged ? "exchanged"
                                                                                 : "known";
  return {{"plan", candidate.plan},
          {"piece_bytes", candidate.piece_bytes},
          {"lengths", lengths},
          {"compressed", !candidate.is_dense},
          {"predicted_ms", ms(candidate.cost.seconds)},
          {"encode_ms", ms(candidate.cost.encode_seconds)},
          {"network_ms", ms(candidate.cost.network_seconds)},
          {"decode_ms", ms(candidate.cost.decode_seconds)}};
}

}  // namespace

ChosenPlan choose_on_loopback(const SyncCommandOptions& options, const ChoiceSubject& subject) {
  if (has_sync(subject.request)) return with_sync(subject);
  const std::uint32_t world = subject.request.world;
  SecondsPerByte copying{};
  rt::NetworkModel network = loopback_network(options, world, copying);
  rt::PlanChoice choice =
      choose(options, subject, cost_inputs(options, subject, std::move(network), copying, world));
  rt::PlanRequest request = rt::request_of(subject.request, choice.chosen);
  return {std::move(request), std::move(choice)};
}

ChosenPlan choose_over(const SyncCommandOptions& options, const ChoiceSubject& subject,
                       rt::Transport& transport) {
  if (has_sync(subject.request)) return with_sync(subject);
  const std::uint32_t on_machine = ranks_of_machine(options, transport);
  std::optional<rt::NetworkModel> network;
  if (options.probe.empty()) network = measure(options, transport);
  std::optional<rt::PlanChoice> choice;
  ChoiceWords words{};
  if (transport.rank() == 0) {
    try {
      if (!network) network = read_network(options, transport.world());
      choice = choose(options, subject,
                      cost_inputs(options, subject, std::move(*network), {}, on_machine));
    } catch (const std::exception& error) {
      transport.abandon({rt::ErrorKind::InvalidArgument, error.what()});
      throw;
    }
    words = words_of(choice->chosen);
  }
  rt::Exchange exchange{rt::ExchangeKind::Broadcast};
  exchange.output = {reinterpret_cast<std::uint8_t*>(words.data()), sizeof words};
  // Rank 0 measures each program and tries all plans meanwhile.
  const auto limit = timeout_of(options) + kChoiceLimit;
  value_or_throw(rt::exchange_now(transport, exchange, limit));
  rt::PlanRequest request = rt::request_of(subject.request, candidate_of(words));
  return {std::move(request), std::move(choice)};
}

std::string choice_text(const rt::PlanChoice& choice) {
  std::string text = fmt::format("{:<50} {:>11} {:>10} {:>10} {:>10}\n", "", "predicted", "encode",
                                 "network", "decode");
  text += fmt::format("{:<50} {:>11} {:>10} {:>10} {:>10}\n", "plan", "ms", "ms", "ms", "ms");
  std::vector<std::pair<std::string, bool>> shown;
  for (const rt::PlanCandidate& each : choice.candidates) {
    const std::pair key(each.plan, each.is_dense);
    if (std::ranges::find(shown, key) != shown.end()) continue;
    shown.push_back(key);
    text += fmt::format("{:<50} {:>11.3f} {:>10.3f} {:>10.3f} {:>10.3f}\n",
                        rt::describe_candidate(each), 1e3 * each.cost.seconds,
                        1e3 * each.cost.encode_seconds, 1e3 * each.cost.network_seconds,
                        1e3 * each.cost.decode_seconds);
  }
  return text + choice.reason + "\n";
}

json choice_json(const rt::PlanChoice& choice) {
  json candidates = json::array();
  for (const rt::PlanCandidate& each : choice.candidates) {
    candidates.push_back(candidate_json(each));
  }
  return {{"reason", choice.reason},
          {"chosen", candidate_json(choice.chosen)},
          {"candidates", candidates}};
}

}  // namespace cinch::driver
