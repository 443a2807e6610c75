// cinch simulate: what a step would take on a fabric that nobody has at hand.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/step_plan.h"
#include "compiler/driver/report/text.h"
#include "runtime/planner/export/export_plan.h"
#include "runtime/simulator/fabric_step.h"
#include "runtime/simulator/period.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

// Other plans are simulated beside the given one up to this size, and by classes of ranks.
constexpr std::uint32_t kMostComparedRanks = 128;
constexpr std::size_t kShownLinks = 5;
constexpr double kMostOfSlow = 1e6;  // of ranks, and times

double as_ms(double seconds) {
  return 1e3 * seconds;
}

// "0.1%:2x": a share of the ranks, or "3:2x": their number, and how many times as long they take.
struct Slowness {
  double count = 0;
  bool is_share = false;
  double factor = 1;
};

double read_number(std::string_view text, const std::string& all) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 &&
      value <= kMostOfSlow) {
    return value;
  }
  throw UsageError("--slow {}: is not like 0.1%:2x, or 3:2x", all);
}

Slowness read_slowness(const std::string& text) {
  Slowness slowness;
  const std::size_t colon = text.find(':');
  std::string_view count = std::string_view(text).substr(0, colon);
  std::string_view factor =
      colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1);
  slowness.is_share = count.ends_with('%');
  if (slowness.is_share) count.remove_suffix(1);
  if (factor.ends_with('x')) factor.remove_suffix(1);
  slowness.count = read_number(count, text);
  slowness.factor = read_number(factor, text);
  const bool is_count =
      slowness.is_share ? slowness.count <= 100 : slowness.count == std::floor(slowness.count);
  if (!is_count) throw UsageError("--slow {}: is not like 0.1%:2x, or 3:2x", text);
  if (slowness.factor < 1) throw UsageError("--slow {}: slow ranks take longer than others", text);
  return slowness;
}

// Slow ranks lie as far from one another as they can.
std::vector<double> slowness_of(const std::string& text, std::uint32_t world) {
  if (text.empty()) return {};
  const Slowness slowness = read_slowness(text);
  const double wanted = slowness.is_share ? slowness.count / 100 * world : slowness.count;
  if (wanted > world) throw UsageError("--slow {}: there are {} ranks", text, world);
  const auto count = static_cast<std::uint32_t>(std::min<double>(world, std::ceil(wanted)));
  std::vector<double> factors(world, 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    factors[static_cast<std::size_t>(std::uint64_t{i} * world / count)] = slowness.factor;
  }
  return factors;
}

// The words of --routing.
constexpr std::array<std::pair<std::string_view, rt::RoutingRule>, 7> kRoutingRules = {
    {{"sprayed", rt::RoutingRule::Sprayed},
     {"hashed", rt::RoutingRule::Hashed},
     {"host", rt::RoutingRule::ByHost},
     {"leaf-pair", rt::RoutingRule::ByLeafPair},
     {"coloured", rt::RoutingRule::Coloured},
     {"coloured-nic", rt::RoutingRule::ColouredAboveNic},
     {"coloured-whole", rt::RoutingRule::ColouredWhole}}};

rt::RoutingOptions routing_of(const SimulateCommandOptions& options) {
  rt::RoutingOptions routing{.seed = options.seed};
  for (const auto& [name, rule] : kRoutingRules) {
    if (options.routing == name) routing.rule = rule;
  }
  return routing;
}

struct SimulatedStep {
  std::string name;
  rt::PlanRequest request;
  rt::PlanCost cost;
};

class StepOnFabric {
 public:
  explicit StepOnFabric(const SimulateCommandOptions& options)
      : options_(options), topology_(read_topology()) {
    world_ = options.step.ranks == 0 ? topology_.num_ranks() : options.step.ranks;
    check_world();
    read_tensors();
    subject_ = load_programs(options.step.execution, loaded_);
    find_costs();
  }

  void run() {
    const Progress progress("simulating");
    step_ = value_or_throw(rt::simulate_on_fabric(topology_, fabric_step(request_)));
    if (world_ <= kMostComparedRanks || has_classes()) compare();
    if (has_period()) find_period();
  }

  // "step.goal", or "step.RANK.et" for each rank.
  void write_export() const;
  json report() const;
  void print(const json& report) const;
  void write_trace() const {
    if (options_.step.trace.empty()) return;
    write_file(options_.step.trace,
               predicted_trace(step_.plan, step_.spans, step_.cost.seconds, ready_));
  }

 private:
  rt::Topology read_topology() const {
    const std::string& path = options_.topology;
    rt::Topology topology = value_or_throw(rt::topology_from_text(read_text_file(path)), path);
    if (options_.down.empty()) return topology;
    rt::Topology::Shape shape = topology.shape();
    for (const std::string& link : options_.down) shape.changes.push_back({link, 0});
    return value_or_throw(rt::Topology::make(std::move(shape)), path);
  }

  void check_world() const {
    if (world_ > topology_.num_ranks()) {
      throw CommandError(ExitCode::AtFault, "{}: it has {} ranks, not {}", options_.topology,
                         topology_.num_ranks(), world_);
    }
    if (has_classes() && !options_.format.empty()) {
      throw CommandError(ExitCode::AtFault,
                         "{} ranks in classes: at most {}, one by one, are exported", world_,
                         rt::kMostSingleRanks);
    }
    const std::uint32_t on_each = topology_.shape().ranks_per_machine;
    if (world_ % on_each == 0) return;
    throw CommandError(ExitCode::AtFault, "{} ranks do not fill machines of {}", world_, on_each);
  }

  void read_tensors() {
    if (!options_.step.profile.empty()) profile_ = read_profile(options_.step.profile);
    if (!options_.file.empty()) {
      file_ = value_or_throw(rt::plan_file_from_json(read_text_file(options_.file)), options_.file);
      for (const rt::PlanFile::Program& each : file_->programs) loaded_.push_back(each.program);
    } else if (options_.program != "none") {
      loaded_.push_back(options_.program);
    }
    num_programs_ = loaded_.size();
    const bool has_half = std::ranges::find(loaded_, kHalfProgram) != loaded_.end();
    if (!has_half) loaded_.emplace_back(kHalfProgram);
  }

  // Programs are known, and so are their facts.
  void find_costs() {
    request_.world = world_;
    request_.ranks_per_machine = topology_.shape().ranks_per_machine;
    for (const Program& program : subject_.programs) {
      request_.codecs.push_back(
          rt::codec_facts(rt::image_of(program), world_, 0, request_.ranks_per_machine));
    }
    for (std::size_t i = 0; i < subject_.carriers.size(); ++i) {
      request_.codecs[i].carrier_codec = subject_.carriers[i];
    }
    check_predictable(subject_, request_);
    std::vector<std::vector<std::int64_t>> shapes;
    if (file_) {
      for (const rt::PlanFile::Tensor& tensor : file_->tensors) {
        request_.tensors.push_back({tensor.name, tensor.rows, tensor.cols, tensor.program});
        shapes.push_back({tensor.rows, tensor.cols});
      }
      take_ready_times();
      rt::PlanFile file = *file_;
      file.world = world_;
      file.ranks_per_machine = request_.ranks_per_machine;
      request_ = value_or_throw(rt::with_plan_file(std::move(request_), file), options_.file);
    } else if (profile_) {
      for (const rt::ReadyTensor& tensor : profile_->tensors) {
        shapes.push_back(shape_of(tensor));
        const Shape shape = matrix_of(shapes.back());
        const bool is_exact = num_programs_ == 0 || is_sent_exactly(shapes.back());
        request_.tensors.push_back(
            {tensor.name, shape.rows, shape.cols, is_exact ? rt::kDense : 0});
        ready_.push_back(tensor.ready_seconds);
      }
      request_.plan = options_.plan;
      if (options_.piece_bytes) request_.piece_bytes = *options_.piece_bytes;
    }
    const rt::SpeedTable table = read_or_measure_speeds(options_.step, subject_, shapes, 1);
    costs_.is_on_device = table.device != "cpu";
    costs_.threads = costs_.is_on_device ? 0 : table.threads;
    costs_.cores = table.threads;  // every rank has its own
    set_speeds(options_.step, table, subject_, costs_);
    costs_.ready_seconds = ready_;
    slowness_ = slowness_of(options_.slow, world_);
    const rt::Topology::Port& nic = topology_.shape().nic;
    costs_.network =
        rt::shaped_network(world_, {static_cast<double>(nic.latency) / 1e12, nic.bytes_per_second});
    const double message = static_cast<double>(topology_.shape().message) / 1e12;
    for (std::size_t i = 0; i < rt::kMeasuredKinds.size(); ++i) {
      const bool is_message = rt::kMeasuredKinds[i] == rt::ExchangeKind::Send;
      const double rounds = rt::kMeasuredKinds[i] == rt::ExchangeKind::AllReduce ? 2 : 1;
      costs_.exchange_work[i].base = message * (is_message ? 1 : rounds * (world_ - 1));
    }
  }

  bool has_classes() const { return options_.has_classes || world_ > rt::kMostSingleRanks; }
  rt::FabricStep fabric_step(const rt::PlanRequest& request) const {
    return {request, costs_, slowness_, has_classes(), routing_of(options_)};
  }

  void take_ready_times() {
    if (!profile_) return;
    std::map<std::string_view, double> times;
    for (const rt::ReadyTensor& tensor : profile_->tensors) {
      times.emplace(tensor.name, tensor.ready_seconds);
    }
    for (const rt::PlanTensor& tensor : request_.tensors) {
      const auto found = times.find(tensor.name);
      if (found == times.end()) {
        throw CommandError(ExitCode::AtFault, "{}: has no tensor {}, as {} has",
                           options_.step.profile, tensor.name, options_.file);
      }
      ready_.push_back(found->second);
    }
  }

  // f32, 16 bits and each program by simpler plans; of each the fastest.
  void compare() {
    const auto half =
        static_cast<std::uint32_t>(std::ranges::find(loaded_, kHalfProgram) - loaded_.begin());
    compare_with("f32", rt::kDense);
    compare_with("f16", half);
    for (std::uint32_t codec = 0; codec < num_programs_; ++codec) {
      if (codec != half) compare_with(loaded_[codec], codec);
    }
  }

  void compare_with(const std::string& name, std::uint32_t codec) {
    std::optional<SimulatedStep> best;
    for (const char* plan : {"allreduce", "allgather", "two_shot", "ring", "hierarchical"}) {
      const bool has_machines = request_.ranks_per_machine > 1;
      if (std::string_view(plan) == "hierarchical" && !has_machines) continue;
      // A ring's hops grow with ranks.
      if (std::string_view(plan) == "ring" && has_classes()) continue;
      rt::PlanRequest asked = request_;
      asked.plan = plan;
      asked.routes.clear();
      asked.route_of.clear();
      for (rt::PlanTensor& tensor : asked.tensors) {
        const bool is_whole = name == "f16" || codec == rt::kDense;
        tensor.codec = is_whole || tensor.codec != rt::kDense ? codec : rt::kDense;
      }
      // Programs do not take every plan, and some are too long for so many ranks.
      const auto made = rt::simulate_on_fabric(topology_, fabric_step(asked));
      if (!made || (best && best->cost.seconds <= made->cost.seconds)) continue;
      best = SimulatedStep{name, std::move(asked), made->cost};
    }
    if (best) compared_.push_back(std::move(*best));
  }

  bool has_period() const {
    const rt::PeriodRules& rules = options_.period;
    return rules.every > 1 || rules.delay > 0 || rules.correct > 0 || rules.fragments > 1;
  }

  // Tensors of fragment f, all ready at once, as differences of weights are.
  double exchange_of(std::uint32_t fragment, bool is_exact) const {
    rt::FabricStep step = fabric_step(request_);
    step.inputs.ready_seconds.clear();
    rt::PlanRequest& request = step.request;
    std::vector<rt::PlanTensor> tensors;
    std::vector<std::uint32_t> route_of;
    const std::size_t num = request.tensors.size(), parts = options_.period.fragments;
    for (std::size_t t = num * fragment / parts; t < num * (fragment + 1) / parts; ++t) {
      tensors.push_back(request.tensors[t]);
      if (is_exact) tensors.back().codec = rt::kDense;
      if (!request.route_of.empty()) route_of.push_back(request.route_of[t]);
    }
    if (tensors.empty()) return 0;
    request.tensors = std::move(tensors);
    request.route_of = std::move(route_of);
    return value_or_throw(rt::simulate_on_fabric(topology_, std::move(step))).cost.seconds;
  }

  void find_period() {
    const rt::PeriodRules& rules = options_.period;
    if (!profile_) throw UsageError("--every, --delay and --correct need --profile: a step's time");
    value_or_throw(rt::check_period(rules));
    if (rules.fragments > request_.tensors.size()) {
      throw CommandError(ExitCode::AtFault, "--fragments {}: there are {} tensors", rules.fragments,
                         request_.tensors.size());
    }
    local_seconds_ = std::ranges::max(ready_) + profile_->forward_seconds.value_or(0) +
                     profile_->optimizer_seconds.value_or(0);
    // The slowest rank is waited for in the end.
    if (!slowness_.empty()) local_seconds_ *= std::ranges::max(slowness_);
    std::vector<double> exact;
    for (std::uint32_t f = 0; f < rules.fragments; ++f) {
      exchanges_.push_back(exchange_of(f, false));
      if (rules.correct > 0) exact.push_back(exchange_of(f, true));
    }
    period_ = value_or_throw(rt::period_of(rules, local_seconds_, exchanges_, exact));
  }

  json period_json() const;
  json links_json() const;
  json exposed_json() const;

  const SimulateCommandOptions& options_;
  const rt::Topology topology_;
  std::uint32_t world_ = 0;
  std::optional<rt::PlanFile> file_;
  std::optional<rt::ReadyProfile> profile_;
  std::vector<std::string> loaded_;  // programs, the last perhaps only to compare with
  std::size_t num_programs_ = 0;
  SyncSubject subject_;
  rt::PlanRequest request_;
  rt::CostInputs costs_;
  std::vector<double> ready_;     // by tensor, or empty
  std::vector<double> slowness_;  // by rank, or empty
  rt::FabricStepResult step_;
  std::optional<rt::Period> period_;
  double local_seconds_ = 0;       // of a step of the period, without exchange
  std::vector<double> exchanges_;  // seconds, by fragment
  std::vector<SimulatedStep> compared_;
};

void StepOnFabric::write_export() const {
  if (options_.format.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options_.output, error);
  if (error) {
    throw CommandError(ExitCode::AtFault, "{}: {}", options_.output, error.message());
  }
  const std::string stem = options_.output + "/step.";
  if (options_.format != "chakra") {
    const bool is_one = options_.format == "goal-one";
    const auto streams = is_one ? rt::GoalStreams::One : rt::GoalStreams::Lanes;
    write_file(stem + "goal", value_or_throw(rt::goal_of(step_.plan, costs_, streams)));
    return;
  }
  // All are built before the first is written.
  std::vector<std::vector<std::uint8_t>> files;
  files.reserve(world_);
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    files.push_back(value_or_throw(rt::chakra_of(step_.plan, rank, costs_)));
  }
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    write_file(fmt::format("{}{}.et", stem, rank), files[rank]);
  }
}

json StepOnFabric::period_json() const {
  if (!period_) return nullptr;
  json steps = json::array(), exchanges = json::array();
  for (const rt::PeriodStep& step : period_->steps) {
    json row = {{"wait_ms", as_ms(step.wait_seconds)}, {"corrects", step.corrects}};
    if (step.begins) row["begins"] = *step.begins;
    if (step.uses) row["uses"] = *step.uses;
    steps.push_back(std::move(row));
  }
  for (const double seconds : exchanges_) exchanges.push_back(as_ms(seconds));
  const auto num_steps = static_cast<double>(period_->steps.size());
  return {{"local_step_ms", as_ms(local_seconds_)},
          {"exchange_ms", std::move(exchanges)},
          {"mean_step_ms", as_ms(period_->seconds / num_steps)},
          {"steps", std::move(steps)}};
}

// The busiest first.
json StepOnFabric::links_json() const {
  std::vector<std::pair<double, std::size_t>> busy;
  for (std::size_t i = 0; i < step_.carried.size(); ++i) {
    const double speed = topology_.speed(static_cast<std::uint32_t>(i));
    if (step_.carried[i] > 0) busy.emplace_back(step_.carried[i] / speed / step_.cost.seconds, i);
  }
  std::ranges::stable_sort(busy, std::greater<>(), &std::pair<double, std::size_t>::first);
  json links = json::array();
  for (const auto& [share, i] : busy) {
    if (links.size() == kShownLinks) break;
    links.push_back({{"link", topology_.name_of(static_cast<std::uint32_t>(i))},
                     {"bytes", step_.carried[i]},
                     {"share", share}});
  }
  return links;
}

// By how much each tensor ends later than the backward pass and all that end before it.
json StepOnFabric::exposed_json() const {
  const std::vector<double> ends = rt::tensor_ends(step_.plan, step_.spans);
  std::vector<std::size_t> order(ends.size());
  for (std::size_t t = 0; t < order.size(); ++t) order[t] = t;
  std::ranges::stable_sort(order, {}, [&](std::size_t t) { return ends[t]; });
  double last = ready_.empty() ? 0 : std::ranges::max(ready_);
  json tensors = json::array();
  for (const std::size_t t : order) {
    tensors.push_back({{"tensor", step_.plan.tensors[t].name},
                       {"exposed_ms", as_ms(std::max(0.0, ends[t] - last))}});
    last = std::max(last, ends[t]);
  }
  return tensors;
}

json StepOnFabric::report() const {
  std::map<std::string, double> tiers;
  for (std::size_t i = 0; i < step_.carried.size(); ++i) {
    // Bytes pass one link out and one in.
    const rt::Tier tier = topology_.place_of(static_cast<std::uint32_t>(i)).tier;
    const double links = tier == rt::Tier::Site ? 1 : 2;
    if (step_.carried[i] > 0) tiers[rt::tier_name(tier)] += step_.carried[i] / links;
  }
  json routing;
  if (step_.routing) {
    const rt::Fraction load = step_.routing->largest_load;
    routing = {{"rule", options_.routing},
               {"largest_load", {load.numerator, load.denominator}},
               {"busiest_host", step_.routing->busiest_nic},
               {"flows", step_.routing->num_flows},
               {"pieces", step_.routing->num_pieces},
               {"queue_pairs", step_.routing->queue_pairs}};
  }
  json compared = json::array();
  for (const SimulatedStep& each : compared_) {
    compared.push_back(
        {{"name", each.name}, {"plan", each.request.plan}, {"step_ms", as_ms(each.cost.seconds)}});
  }
  return {{"ranks", world_},
          {"classes", step_.num_classes},
          {"plan", step_.plan.name},
          {"step_ms", as_ms(step_.cost.seconds)},
          {"backward_ms", as_ms(ready_.empty() ? 0 : std::ranges::max(ready_))},
          {"encode_ms", as_ms(step_.cost.encode_seconds)},
          {"network_ms", as_ms(step_.cost.network_seconds)},
          {"decode_ms", as_ms(step_.cost.decode_seconds)},
          {"bytes_by_tier", tiers},
          {"busiest_links", links_json()},
          {"tensors", exposed_json()},
          {"routing", std::move(routing)},
          {"period", period_json()},
          {"compared", std::move(compared)}};
}

void StepOnFabric::print(const json& report) const {
  const auto line = [](const std::string& name, const std::string& text) {
    constexpr std::size_t kIndent = 16;
    print_text("{}{}\n", padded(name, kIndent), wrapped(text, kIndent, sentence_width()));
  };
  const auto ms = [&](const char* key) { return in_milliseconds(report[key].get<double>()); };
  const std::string classes =
      has_classes() ? fmt::format(", {} of them different", step_.num_classes) : "";
  print_text("{} ranks{}, plan {}\n", world_, classes, step_.plan.name);
  line("step", ms("step_ms"));
  line("of that", fmt::format("encoding {}, exchanges {}, all other work {} (the most of a rank; "
                              "they overlap)",
                              ms("encode_ms"), ms("network_ms"), ms("decode_ms")));
  if (!ready_.empty()) line("backward pass", ms("backward_ms"));
  for (const auto& [tier, bytes] : report["bytes_by_tier"].items()) {
    line("over " + tier + " links", size_text(bytes.get<double>()));
  }
  for (const json& link : report["busiest_links"]) {
    line("busy",
         fmt::format("{}: {:.0f} % of the step, {}", link["link"].get<std::string>(),
                     100 * link["share"].get<double>(), size_text(link["bytes"].get<double>())));
  }
  if (period_) {
    const json& period = report["period"];
    double waits = 0;
    for (const json& step : period["steps"]) waits += step["wait_ms"].get<double>();
    line(
        "period",
        fmt::format("{} steps of {}, {} of waiting; a step takes {} on average",
                    period["steps"].size(), in_milliseconds(period["local_step_ms"].get<double>()),
                    in_milliseconds(waits), in_milliseconds(period["mean_step_ms"].get<double>())));
  }
  if (step_.routing) {
    print_text("routing, a byte from each rank to each that it sends to:\n{}",
               rt::routing_report_text(*step_.routing));
  }
  if (options_.step.explain) {
    TextTable table({{"", "tensor", true}, {"", "exposed ms"}});
    for (const json& tensor : report["tensors"]) {
      table.add({tensor["tensor"].get<std::string>(),
                 cell_in_milliseconds(tensor["exposed_ms"].get<double>())});
    }
    print_text("\n{}\n", table.text(text_width()));
  }
  TextTable table({{"", "all by one plan", true}, {"", "", true}, {"", "step ms"}});
  for (const json& each : report["compared"]) {
    table.add({each["name"].get<std::string>(), each["plan"].get<std::string>(),
               cell_in_milliseconds(each["step_ms"].get<double>())});
  }
  if (!compared_.empty()) print_text("{}", table.text(text_width()));
}

void check_options(const SimulateCommandOptions& options) {
  if (options.topology.empty())
    throw UsageError("--topology is required: a fabric as JSON, or of htsim");
  if (options.format.empty() != options.output.empty()) {
    throw UsageError("--export and --output belong together: a format, and a folder");
  }
  const bool has_name = !options.plan.empty();
  if (options.file.empty() == !has_name) {
    throw UsageError(has_name ? "give a plan file or --plan, not both"
                              : "a plan file is required, or --plan with --profile");
  }
  if (has_name && options.step.profile.empty()) {
    throw UsageError("--plan {} needs --profile: the tensors, and when they are ready",
                     options.plan);
  }
  if (!has_name && options.piece_bytes) {
    throw UsageError("a plan file says how large pieces are: give no --piece-bytes");
  }
  if (!has_name && options.program != "none") {
    throw UsageError("a plan file says which program each tensor takes: give no --program");
  }
}

}  // namespace

ExitCode run_simulate(const SimulateCommandOptions& options) {
  check_options(options);
  require_place_for(options.step.trace);
  StepOnFabric step(options);
  step.run();
  step.write_trace();
  step.write_export();
  const json report = step.report();
  if (options.step.json) {
    print_result(report);
  } else {
    step.print(report);
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
