#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <thread>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "compiler/driver/ranks/sync_rank.h"
#include "compiler/driver/report/text.h"
#include "runtime/collective/loopback.h"
#include "runtime/planner/network/network_model.h"
#include "runtime/planner/plan_file.h"
#include "runtime/planner/planner.h"
#include "runtime/simulator/fabric_step.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

// Seconds to measure: how threads meet and copy, if links have a shape; whole exchanges, if nothing
// else is known.
constexpr double kOverheadSeconds = 0.2, kNetworkSeconds = 1;
constexpr std::uint64_t kLargestBytes = 4 << 20;

rt::NetworkModel read_network(const SyncCommandOptions& options, std::uint32_t world) {
  rt::NetworkModel model =
      value_or_throw(rt::network_from_json(read_text_file(options.probe)), options.probe);
  if (model.has_two_networks() && model.ranks_per_machine != options.ranks_per_machine) {
    throw CommandError(ExitCode::AtFault,
                       "{}: measured with {} ranks on each machine: --machine-ranks {}",
                       options.probe, model.ranks_per_machine, model.ranks_per_machine);
  }
  if (model.transport == options.transport && model.world == world) return model;
  throw CommandError(ExitCode::AtFault, "{}: measured over {} with {} ranks, not over {} with {}",
                     options.probe, model.transport, model.world, options.transport, world);
}

}  // namespace

rt::KnownNetwork loopback_network(std::uint32_t world, const rt::LinkShape& shape,
                                  std::chrono::milliseconds timeout) {
  // On links without a shape threads meet and copy, so all of the time is work.
  rt::LoopbackWorld links(world);
  const double seconds = shape.is_shaped() ? kOverheadSeconds : kNetworkSeconds;
  const rt::NetworkModel threads =
      measure_on_threads(world, {kLargestBytes, seconds, timeout},
                         [&](std::uint32_t rank) { return links.transport(rank); });
  rt::KnownNetwork known{rt::shaped_network(world, shape), {}};
  for (std::size_t i = 0; i < known.model.lines.size(); ++i) {
    const rt::Line& work = threads.lines[i].line;
    known.model.gaps[i] = work.base;
    known.model.lines[i].line.base += work.base;
    known.copying[i] = work.slope;
  }
  return known;
}

namespace {

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
          {"tried_ms", candidate.is_tried() ? json(ms(candidate.tried_seconds)) : json()},
          {"encode_ms", ms(candidate.cost.encode_seconds)},
          {"network_ms", ms(candidate.cost.network_seconds)},
          {"decode_ms", ms(candidate.cost.decode_seconds)}};
}

// Time for measuring plain f32.
constexpr double kPlainSeconds = 0.1;

struct LinkUnit {
  std::string_view name;
  double bits;
};
constexpr std::array kLinkUnits = {LinkUnit{"kbit", 1e3}, LinkUnit{"mbit", 1e6},
                                   LinkUnit{"gbit", 1e9}, LinkUnit{"tbit", 1e12}};

}  // namespace

rt::ChoiceSpace space_of(const SyncCommandOptions& options) {
  rt::ChoiceSpace space;
  if (options.piece_bytes) space.piece_bytes = {*options.piece_bytes};
  const auto lengths = rt::length_policy_named(options.lengths);
  if (lengths && lengths != rt::LengthPolicy::Auto) space.lengths = {*lengths};
  return space;
}

rt::AutoPlan choose_on_loopback(const SyncCommandOptions& options,
                                std::vector<rt::AutoPlanInputs> by_rank) {
  if (!rt::has_choice(by_rank[0].request)) return rt::without_choice(by_rank[0].request);
  const std::uint32_t world = by_rank[0].request.world;
  by_rank[0].network = options.probe.empty() ? loopback_network(world, link_shape(options),
                                                                by_rank[0].session.timeout)
                                             : rt::KnownNetwork{read_network(options, world), {}};
  rt::LoopbackWorld links(world, link_shape(options));
  std::vector<rt::AutoPlan> chosen(by_rank.size());
  run_on_rank_threads(world, [&](std::uint32_t rank) {
    const auto transport = links.transport(rank);
    by_rank[rank].measures_network = false;
    chosen[rank] = value_or_throw(rt::choose_auto_plan(by_rank[rank], *transport));
  });
  return std::move(chosen[0]);
}

rt::AutoPlan choose_over(const SyncCommandOptions& options, rt::AutoPlanInputs inputs,
                         rt::Transport& transport) {
  inputs.measures_network = options.probe.empty();
  if (!inputs.measures_network && transport.rank() == 0) {
    try {
      inputs.network = {read_network(options, transport.world()), {}};
    } catch (const CommandError& error) {
      transport.abandon({rt::ErrorKind::InvalidArgument, error.what()});
      throw;
    }
  }
  return value_or_throw(rt::choose_auto_plan(inputs, transport));
}

std::string choice_text(const rt::PlanChoice& choice) {
  const auto ms = [](double seconds) { return cell_in_milliseconds(1e3 * seconds); };
  TextTable table({{"", "plan", true},
                   {"tried", "ms"},
                   {"predicted", "ms"},
                   {"encode", "ms"},
                   {"network", "ms"},
                   {"decode", "ms"}});
  std::vector<std::pair<std::string, bool>> shown;
  for (const rt::PlanCandidate& each : choice.candidates) {
    const std::pair key(each.plan, each.is_dense);
    const bool is_tried = each.is_tried();
    if (!is_tried && std::ranges::find(shown, key) != shown.end()) continue;
    shown.push_back(key);
    table.add({rt::describe_candidate(each), is_tried ? ms(each.tried_seconds) : "",
               ms(each.cost.seconds), ms(each.cost.encode_seconds), ms(each.cost.network_seconds),
               ms(each.cost.decode_seconds)});
  }
  return table.text(text_width()) + wrapped(choice.reason, 0, sentence_width()) + "\n";
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

void check_plan_name(const SyncCommandOptions& options) {
  if (options.plan == "reduce_scatter" && !options.explain) {
    throw UsageError(
        "--plan reduce_scatter gives each rank its own part of the update, for programs that call "
        "the API; `cinch sync` gives every rank all of it: take --plan two_shot, which exchanges "
        "in the same way and then gathers the parts");
  }
  const std::string& plan = options.plan;
  if (rt::is_plan_file(plan)) return;
  std::vector<std::string_view> names(rt::plan_names().begin(), rt::plan_names().end());
  names.emplace_back("auto");
  const bool is_known = std::ranges::find(names, plan) != names.end();
  if (is_known || plan == "reduce_scatter") return;
  const std::string_view near = nearest_name(plan, names);
  throw UsageError("--plan: '{}' is not one of {}{}", plan, fmt::join(names, ", "),
                   did_you_mean(near));
}

void check_ranks_of_plan(const SyncCommandOptions& options, std::uint32_t world) {
  if (world % std::max(1U, options.ranks_per_machine) != 0) {
    throw UsageError("--machine-ranks {}: {} ranks cannot be split into machines of {} each",
                     options.ranks_per_machine, world, options.ranks_per_machine);
  }
  if (options.plan != "ps") return;
  const std::set<std::uint32_t> servers(options.servers.begin(), options.servers.end());
  if (!servers.empty() && servers.size() == options.servers.size() && *servers.rbegin() < world)
    return;
  throw UsageError("--plan ps: --servers takes one or more different ranks from 0 to {}",
                   world - 1);
}

double parse_link(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::tolower(c); });
  if (unit.ends_with("/s")) unit.resize(unit.size() - 2);
  const auto known = std::ranges::find(kLinkUnits, unit, &LinkUnit::name);
  if (error != std::errc() || known == kLinkUnits.end() || !(number > 0) ||
      !std::isfinite(number)) {
    throw UsageError("--link takes a bandwidth such as 1Gbit/s or 100Mbit/s; found '{}'", text);
  }
  return number * known->bits / 8;
}

StepPredictor::StepPredictor(const std::vector<SurveyTensor>& tensors, const SurveyOptions& options)
    : tensors_(tensors), options_(options) {
  costs_.network =
      rt::shaped_network(options.ranks, {options.latency_us / 1e6, parse_link(options.link)});
  costs_.cores = std::max(1U, std::thread::hardware_concurrency());
  const std::uint32_t asked = options.execution.threads;
  costs_.threads = asked == 0 ? costs_.cores : std::min<double>(asked, costs_.cores);
  std::int64_t elements = 0;
  for (const SurveyTensor& tensor : tensors) elements += tensor.array.num_elems();
  rt::SpeedOptions speed;
  speed.session.threads = static_cast<std::uint32_t>(costs_.threads);
  speed.seconds = kPlainSeconds;
  value_or_throw(rt::measure_dense(elements, speed, costs_));
}

rt::PlanRequest StepPredictor::request(bool is_compressed, bool takes_matrices) const {
  rt::PlanRequest request;
  request.world = options_.ranks;
  for (const SurveyTensor& tensor : tensors_) {
    const Shape shape = shape_of(tensor.array, true);
    const bool has_codec = is_compressed && (tensor.is_matrix() || !takes_matrices);
    request.tensors.push_back({tensor.name, shape.rows, shape.cols, has_codec ? 0 : rt::kDense});
  }
  return request;
}

// Of many machines on one switch, which are alike but for the tensors that they own.
StepPrediction StepPredictor::best_of_classes(const rt::PlanRequest& request,
                                              const rt::CostInputs& costs) const {
  constexpr double kPicoseconds = 1e12;
  const double way = options_.latency_us / 1e6 * kPicoseconds;
  rt::Topology::Shape shape;
  shape.machines_per_leaf = options_.ranks;
  shape.machines = {options_.ranks};
  shape.nic = {parse_link(options_.link), static_cast<rt::Picoseconds>(std::llround(way / 2))};
  shape.machine = shape.uplink = shape.nic;
  const rt::Topology fabric = value_or_throw(rt::Topology::make(std::move(shape)));
  std::optional<StepPrediction> best;
  std::string refusal;
  for (const char* plan : {"allreduce", "allgather", "two_shot"}) {
    for (const std::uint64_t piece_bytes : {UINT64_C(4) << 20, UINT64_C(1) << 30}) {
      rt::FabricStep step{request, costs, {}, true};
      step.request.plan = plan;
      step.request.piece_bytes = piece_bytes;
      const auto made = rt::simulate_on_fabric(fabric, std::move(step));
      if (!made) {
        refusal = made.error().message;
        continue;
      }
      const rt::PlanCost& cost = made->cost;
      if (best && best->seconds <= cost.seconds) continue;
      best = StepPrediction{plan, cost.seconds, cost.encode_seconds, cost.network_seconds,
                            cost.decode_seconds};
    }
  }
  if (!best) throw CommandError(ExitCode::AtFault, "{}", refusal);
  return *best;
}

StepPrediction StepPredictor::best(const rt::PlanRequest& request,
                                   const rt::CostInputs& costs) const {
  if (options_.ranks > kMaxSurveyRanks) return best_of_classes(request, costs);
  rt::ChoiceSpace space;
  space.may_be_dense = false;  // the program in question must be used
  // With many ranks in small pieces, each plan takes seconds to examine.
  constexpr std::uint32_t kManyRanks = 16;
  if (options_.ranks > kManyRanks) space.piece_bytes = {16 << 20, 4 << 20};
  const rt::PlanChoice choice = value_or_throw(rt::choose_plan(request, costs, space));
  const rt::PlanCost& cost = choice.chosen.cost;
  return {choice.chosen.plan, cost.seconds, cost.encode_seconds, cost.network_seconds,
          cost.decode_seconds};
}

StepPrediction StepPredictor::without_program() const {
  return best(request(false, false), costs_);
}

StepPrediction StepPredictor::with_program(
    const std::shared_ptr<const rt::LoadedProgram>& program,
    const std::shared_ptr<const rt::LoadedProgram>& carrier) const {
  const bool is_matrix = program->info().is_matrix;
  rt::PlanRequest asked = request(true, is_matrix);
  rt::SpeedOptions speed;
  speed.session.programs = {program};
  if (carrier != nullptr) speed.session.programs.push_back(carrier);
  for (const auto& each : speed.session.programs)
    asked.codecs.push_back(rt::codec_facts(rt::image_of(each), options_.ranks));
  if (carrier != nullptr) asked.codecs[0].carrier_codec = 1;
  if (asked.codecs[0].has_sync && !asked.codecs[0].sync_rounds) {
    throw CommandError(
        ExitCode::AtFault,
        "a `sync` body that decides while it runs which collectives it makes has one "
        "plan, whose time `cinch sync` measures");
  }
  const SurveyTensor* largest = nullptr;
  for (const SurveyTensor& tensor : tensors_) {
    if (is_matrix && !tensor.is_matrix()) continue;
    if (largest == nullptr || tensor.array.num_elems() > largest->array.num_elems())
      largest = &tensor;
  }
  speed.session.threads = static_cast<std::uint32_t>(costs_.threads);
  speed.session.seed = options_.seed;
  speed.seconds = options_.seconds;
  const Shape shape = shape_of(largest->array, true);
  rt::CostInputs costs = costs_;
  for (std::uint32_t codec = 0; codec < asked.codecs.size(); ++codec) {
    costs.codecs.push_back(value_or_throw(
        rt::measure_codec(codec, view_of(largest->array), shape.rows, shape.cols, speed)));
  }
  return best(asked, costs);
}

}  // namespace cinch::driver
