#include "runtime/planner/routes/step_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "runtime/planner/choose_plan.h"
#include "runtime/planner/exchange_options.h"
#include "runtime/planner/routes/route_search.h"

namespace cinch::rt {
namespace {

constexpr double kNanoseconds = 1e9;
constexpr std::uint64_t kElementBytes = 4;
// A tensor in more pieces costs as much for each further one as those between these two.
constexpr std::int64_t kFewPieces = 8, kManyPieces = 16;
// Fewer groups are searched in a second. Groups of more tensors are made until there are no more.
constexpr std::size_t kMostGroups = 600;
constexpr std::int64_t kLeastElems = 4096;
// With more ranks, predicting all options would take longer than all else.
constexpr std::uint32_t kMostRanksOfOptions = 32;
// A plan by group must save this share, since predictions are not better.
constexpr double kWorthGroups = 0.99;
constexpr const char *kHalf = "f16", *kAboveSize = "above a size", *kByGroup = "by group";

Nanoseconds to_nanoseconds(double seconds) {
  return static_cast<Nanoseconds>(std::llround(seconds * kNanoseconds));
}

using TensorList = std::vector<std::uint32_t>;

class StepPlanner {
 public:
  explicit StepPlanner(const StepRoutesRequest& request) : request_(request) {}

  Result<StepRoutes> run() {
    CINCH_TRY(check());
    join_tensors();
    CINCH_TRY(find_options());
    CINCH_TRY(find_ways());
    CINCH_TRY(compare_single_plans());
    CINCH_TRY(compare_thresholds());
    search();
    find_bounds();
    CINCH_TRY(compare_found());
    CINCH_TRY(choose());
    return std::move(found_);
  }

  Result<PlannedStep> run_by_group() {
    CINCH_TRY(check());
    join_tensors();
    CINCH_TRY(find_options());
    CINCH_TRY(find_ways());
    search();
    CINCH_TRY(compare_found());
    if (found_.compared.empty()) return invalid("no plan by group fits");
    return std::move(found_.compared.back());
  }

 private:
  Status check() const {
    const std::size_t count = tensors().size();
    if (count == 0) return invalid("no tensor is to be planned");
    if (count > kMostPlannedTensors) {
      return invalid(fmt::format("{} tensors: at most {} are planned, so join small ones", count,
                                 kMostPlannedTensors));
    }
    const bool fits =
        request_.codecs.size() == count && (ready().empty() || ready().size() == count);
    return fits ? Status(Ok{}) : invalid("other codecs or ready times than tensors");
  }

  const std::vector<PlanTensor>& tensors() const { return request_.plans.tensors; }
  const std::vector<double>& ready() const { return request_.costs.ready_seconds; }
  double ready_of(std::uint32_t tensor) const { return ready().empty() ? 0 : ready()[tensor]; }

  // Tensors that cost less than a message join the next ones that may take the same codecs.
  void join_tensors() {
    const Line& line = request_.costs.network.of(ExchangeKind::AllGather).line;
    const double elems = line.slope > 0 ? line.base / line.slope / kElementBytes : 0;
    constexpr double kMost = 1 << 20;
    auto least = static_cast<std::int64_t>(std::clamp<double>(elems, kLeastElems, kMost));
    for (join_until(least); groups_.size() > kMostGroups; join_until(least)) least *= 2;
  }

  void join_until(std::int64_t least_elems) {
    struct Open {
      TensorList tensors;
      std::int64_t elems = 0;
    };
    std::map<std::vector<std::uint32_t>, Open> open;  // by the codecs that they may take
    groups_.clear();
    // A group is ready with its last tensor, wherever that stands in the request.
    const auto readiness = [this](std::uint32_t tensor) { return ready_of(tensor); };
    TensorList order(tensors().size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, readiness);
    for (const std::uint32_t t : order) {
      Open& of = open[request_.codecs[t]];
      of.tensors.push_back(t);
      of.elems += tensors()[t].num_elems();
      if (of.elems < least_elems) continue;
      groups_.push_back(std::move(of.tensors));
      of = {};
    }
    for (auto& [codecs, of] : open) {
      if (!of.tensors.empty()) groups_.push_back(std::move(of.tensors));
    }
    std::ranges::sort(groups_, {}, [&](const TensorList& group) {
      return std::pair(readiness(group.back()), group.back());
    });
  }

  std::int64_t elems_of(const TensorList& group) const {
    std::int64_t elems = 0;
    for (const std::uint32_t t : group) elems += tensors()[t].num_elems();
    return elems;
  }

  PlanRequest request_for(const TensorList& group, const RouteWay& way) const {
    PlanRequest made = request_.plans;
    made.tensors.clear();
    for (const std::uint32_t t : group) {
      made.tensors.push_back(tensors()[t]);
      made.tensors.back().codec = way.codec;
    }
    made.plan = way.route.plan;
    made.piece_bytes = way.route.piece_bytes;
    made.lengths = way.route.lengths;
    made.option = way.route.option;
    if (way.route.device == OptionDevice::Cpu) {
      made.routes = {way.route};
      made.route_of.assign(group.size(), 0);
    }
    return made;
  }

  // All devices that may encode by the codec.
  std::vector<OptionDevice> devices_of(std::uint32_t codec) const {
    const bool may_move = codec != kDense && request_.costs.on_cpus.has_value() &&
                          !request_.plans.codecs[codec].has_sync;
    if (!may_move) return {OptionDevice::Gpu};
    return {OptionDevice::Gpu, OptionDevice::Cpu};
  }

  // Ways of "hierarchical" for a codec: the usual one, and of all others those that are fastest for
  // a large group and for a usual one.
  Status find_options() {
    constexpr std::size_t kKept = 3;
    const std::uint32_t on_each = request_.plans.ranks_per_machine;
    const bool has_levels = on_each > 1 && request_.plans.world > on_each &&
                            request_.plans.world <= kMostRanksOfOptions;
    if (!has_levels || groups_.empty()) return Ok{};
    for (const std::uint32_t codec : codecs()) {
      if (request_.plans.codecs[codec].has_sync) continue;
      std::vector<const TensorList*> taken;
      for (const TensorList& group : groups_) {
        const auto& own = request_.codecs[group.front()];
        if (std::ranges::find(own, codec) != own.end()) taken.push_back(&group);
      }
      std::ranges::stable_sort(taken, {}, [this](const auto* group) { return elems_of(*group); });
      std::vector<ExchangeOption>& kept = options_[codec];
      for (const std::size_t place : {taken.size() - 1, taken.size() / 2}) {
        for (ExchangeOption& option : TRY(fastest_options(*taken[place], codec, kKept))) {
          if (std::ranges::find(kept, option) == kept.end()) kept.push_back(std::move(option));
        }
      }
    }
    return Ok{};
  }

  Result<std::vector<ExchangeOption>> fastest_options(const TensorList& group, std::uint32_t codec,
                                                      std::size_t count) const {
    std::vector<std::pair<double, ExchangeOption>> timed;
    // As often as in two_shot: more would lose more.
    constexpr std::size_t kMostCompressions = 2;
    for (ExchangeOption& option :
         all_exchange_options({.has_cpu = false, .most_compressions = kMostCompressions})) {
      const bool is_usual = option == usual_hierarchical_option();
      if (num_compressions(option) == 0 || is_usual || compresses_copies(option)) continue;
      RouteWay way{codec, {.plan = "hierarchical"}};
      way.route.piece_bytes = request_.piece_bytes.front();
      way.route.option = option;
      const auto cost = TRY(cost_of(group, way, request_.costs));
      if (cost) timed.emplace_back(cost->seconds, std::move(option));
    }
    std::ranges::stable_sort(timed, {}, &std::pair<double, ExchangeOption>::first);
    std::vector<ExchangeOption> fastest;
    for (auto& [seconds, option] : timed) {
      if (fastest.size() < count) fastest.push_back(std::move(option));
    }
    return fastest;
  }

  // All ways of a group; those in f32 come first.
  std::vector<RouteWay> ways_of(const TensorList& group) const {
    std::vector<std::uint32_t> codecs = {kDense};
    const auto& own = request_.codecs[group.front()];
    codecs.insert(codecs.end(), own.begin(), own.end());
    const std::uint64_t bytes = kElementBytes * static_cast<std::uint64_t>(elems_of(group));
    std::vector<RouteWay> ways;
    for (const std::uint32_t codec : codecs) {
      const bool is_known = codec == kDense || request_.plans.codecs[codec].has_fixed_size;
      const std::vector<LengthPolicy> policies =
          is_known ? std::vector{LengthPolicy::Auto}
                   : std::vector{LengthPolicy::Padded, LengthPolicy::Exchanged};
      for (const std::string_view plan : plan_names()) {
        if (plan == "hierarchical" && request_.plans.ranks_per_machine == 1) continue;
        std::vector<ExchangeOption> options = {request_.plans.option};
        if (const auto more = options_.find(codec);
            plan == "hierarchical" && more != options_.end()) {
          options.insert(options.end(), more->second.begin(), more->second.end());
        }
        // The first size that cuts nothing is the last one that differs.
        bool is_cut = true;
        for (auto size = request_.piece_bytes.rbegin();
             size != request_.piece_bytes.rend() && is_cut; ++size) {
          for (const LengthPolicy lengths : policies) {
            for (const OptionDevice device : devices_of(codec)) {
              for (const ExchangeOption& option : options) {
                ways.push_back({codec, {std::string(plan), *size, lengths, option, device}});
              }
            }
          }
          is_cut = *size < bytes;
        }
      }
    }
    return ways;
  }

  struct Cost {
    RouteWay way;
    PlanCost alone;
    double latency_seconds = 0;  // of its exchanges, which others do not wait for
    double copy_out_seconds = 0, copy_in_seconds = 0;
  };

  // By how much exchanges are shorter where bytes reach the other side at once.
  Result<double> latency_of(const TensorList& group, const RouteWay& way, const PlanCost& cost) {
    constexpr double kLittle = 0.01;  // of the exchanges
    const NetworkModel& network = request_.costs.network;
    double longest = 0;
    for (const FittedLine& fitted : network.lines) longest = std::max(longest, fitted.line.base);
    if (longest < kLittle * cost.network_seconds) return 0;
    CostInputs costs = request_.costs;
    for (FittedLine& fitted : costs.network.lines) fitted.line.base = 0;
    costs.network.within.line.base = 0;
    const auto without = TRY(cost_of(group, way, std::move(costs)));
    return without ? std::max(0.0, cost.network_seconds - without->network_seconds) : 0;
  }

  Result<std::optional<PlanCost>> cost_of(const TensorList& group, const RouteWay& way,
                                          CostInputs costs) const {
    PlanRequest asked = request_for(group, way);
    costs.ready_seconds.clear();
    const bool can_cut = way.codec == kDense || asked.codecs[way.codec].can_cut;
    const auto piece = static_cast<std::int64_t>(way.route.piece_bytes / kElementBytes);
    const std::int64_t elems = elems_of(group), pieces = (elems + piece - 1) / piece;
    if (group.size() > 1 || !can_cut || pieces <= kManyPieces) return predict_useful(asked, costs);
    const auto with = [&](std::int64_t count) {
      asked.tensors[0].rows = count * piece;
      asked.tensors[0].cols = 1;
      return predict_useful(asked, costs);
    };
    const auto few = TRY(with(kFewPieces));
    const auto many = TRY(with(kManyPieces));
    if (!few || !many) return std::nullopt;
    const double more = static_cast<double>(elems - kManyPieces * piece) /
                        static_cast<double>((kManyPieces - kFewPieces) * piece);
    const auto extended = [more](double a, double b) { return b + more * std::max(0.0, b - a); };
    return PlanCost{extended(few->seconds, many->seconds),
                    extended(few->encode_seconds, many->encode_seconds),
                    extended(few->decode_seconds, many->decode_seconds),
                    extended(few->network_seconds, many->network_seconds)};
  }

  Result<std::vector<Cost>> costs_of(const TensorList& group) {
    std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
    shapes.reserve(group.size());
    for (const std::uint32_t t : group) shapes.emplace_back(tensors()[t].rows, tensors()[t].cols);
    const std::pair key(request_.codecs[group.front()], std::move(shapes));
    if (const auto known = known_costs_.find(key); known != known_costs_.end()) {
      return known->second;
    }
    std::vector<Cost> costs;
    for (RouteWay& way : ways_of(group)) {
      const auto cost = TRY(cost_of(group, way, request_.costs));
      if (!cost) continue;
      const double latency = TRY(latency_of(group, way, *cost));
      Cost& made = costs.emplace_back(std::move(way), *cost, latency);
      const auto& cpus = request_.costs.on_cpus;
      if (made.way.route.device != OptionDevice::Cpu || !cpus) continue;
      const auto elems = static_cast<double>(elems_of(group));
      made.copy_out_seconds = cpus->copy_out.at(elems);
      made.copy_in_seconds = cpus->copy_in.at(elems);
    }
    // The first route of a group is its fastest in f32.
    const auto by_time = [](const Cost& a, const Cost& b) {
      return std::pair(a.way.codec != kDense, a.alone.seconds) <
             std::pair(b.way.codec != kDense, b.alone.seconds);
    };
    std::ranges::stable_sort(costs, by_time);
    return known_costs_[key] = std::move(costs);
  }

  // Pieces overlap, so a group alone takes less than all of its work one behind the other. Its
  // longest lane is whole; of the others, what the step takes beside it.
  RouteStages stages_of(const Cost& of) const {
    const PlanCost& cost = of.alone;
    const bool is_on_device =
        request_.costs.is_on_device && of.way.route.device == OptionDevice::Gpu;
    const double copies = of.copy_out_seconds + of.copy_in_seconds;
    const double encode = cost.encode_seconds, decode = cost.decode_seconds,
                 network = cost.network_seconds - of.latency_seconds;
    const double longest =
        is_on_device
            ? std::max({encode, network, decode})
            : std::max({encode + decode, network, of.copy_out_seconds, of.copy_in_seconds});
    const double others = encode + network + decode + copies - longest;
    const double left = std::max(0.0, cost.seconds - of.latency_seconds - longest);
    const double share = others > 0 ? std::min(1.0, left / others) : 0;
    const auto time = [&](double seconds, double of_lane) {
      return to_nanoseconds(of_lane >= longest ? seconds : share * seconds);
    };
    const double encode_lane = is_on_device ? encode : encode + decode,
                 decode_lane = is_on_device ? decode : encode + decode;
    RouteStages stages;
    // No group's exchange has stages of its own within machines, so these lanes carry copies.
    stages.add({RouteLane::Gather, time(of.copy_out_seconds, of.copy_out_seconds)});
    stages.add({is_on_device ? RouteLane::Encode : RouteLane::Cpu, time(encode, encode_lane)});
    stages.add({RouteLane::Exchange, time(network, network), to_nanoseconds(of.latency_seconds)});
    stages.add({is_on_device ? RouteLane::Decode : RouteLane::Cpu,
                std::max<Nanoseconds>(1, time(decode, decode_lane))});
    stages.add({RouteLane::Spread, time(of.copy_in_seconds, of.copy_in_seconds)});
    return stages;
  }

  // Few options are among the ways.
  std::size_t number_of(const ExchangeOption& option) {
    const auto found = std::ranges::find(numbered_options_, option);
    if (found != numbered_options_.end()) {
      return static_cast<std::size_t>(found - numbered_options_.begin());
    }
    numbered_options_.push_back(option);
    return numbered_options_.size() - 1;
  }

  std::uint32_t id_of(const RouteWay& way) {
    const std::tuple key(way.codec, way.route.plan, way.route.piece_bytes, way.route.lengths,
                         way.route.device, number_of(way.route.option));
    return ids_.try_emplace(key, static_cast<std::uint32_t>(ids_.size())).first->second;
  }

  Status find_ways() {
    double before = 0;
    for (const TensorList& group : groups_) {
      costs_.push_back(TRY(costs_of(group)));
      if (costs_.back().empty()) return invalid("no plan takes f32");
      const double at = ready_of(group.back());
      RouteGroup& to = lanes_.emplace_back();
      to.num_elems = elems_of(group);
      to.backward = to_nanoseconds(at) - to_nanoseconds(before);
      before = at;
      for (const Cost& cost : costs_.back()) {
        RouteWay moved = cost.way;
        const auto devices = devices_of(moved.codec);
        moved.route.device = devices.back();
        to.routes.push_back({id_of(cost.way), id_of(moved), stages_of(cost)});
      }
    }
    // Routes keep their ids, by which their costs are found again.
    prune_routes(lanes_);
    return Ok{};
  }

  const Cost& cost_of_route(std::size_t group, std::uint32_t route) {
    const std::uint32_t id = lanes_[group].routes[route].id;
    return *std::ranges::find_if(costs_[group],
                                 [&](const Cost& cost) { return id_of(cost.way) == id; });
  }

  // That some tensor may take.
  std::set<std::uint32_t> codecs() const {
    std::set<std::uint32_t> codecs;
    for (const auto& own : request_.codecs) codecs.insert(own.begin(), own.end());
    return codecs;
  }

  // One plan in one piece size for all tensors that may take the codec, and for the others.
  Status compare_single_plans() {
    CINCH_TRY(compare_single_plan(kDense, "f32"));
    if (request_.half_codec != kDense) CINCH_TRY(compare_single_plan(request_.half_codec, kHalf));
    for (const std::uint32_t codec : codecs()) {
      CINCH_TRY(compare_single_plan(codec, request_.plans.codecs[codec].name));
    }
    return Ok{};
  }

  Status compare_single_plan(std::uint32_t codec, const std::string& name) {
    PlanRequest asked = request_.plans;
    for (std::uint32_t t = 0; t < tensors().size(); ++t) {
      const bool takes =
          name == kHalf || std::ranges::find(request_.codecs[t], codec) != request_.codecs[t].end();
      asked.tensors[t].codec = takes ? codec : kDense;
    }
    ChoiceSpace space;
    space.piece_bytes = request_.piece_bytes;
    space.may_be_dense = false;
    const PlanChoice choice = TRY(choose_plan(asked, request_.costs, space));
    found_.compared.push_back({name, request_of(asked, choice.chosen), choice.chosen.cost});
    return Ok{};
  }

  void search() {
    RouteSearch by_readiness;
    by_readiness.rules.order = LaneOrder::Readiness;
    searched_ = {search_routes(lanes_, by_readiness), search_routes(lanes_)};
    for (const std::uint32_t codec : codecs()) {
      if (codecs().size() > 1) search_with(codec, by_readiness);
    }
  }

  // Lanes are not all that ranks do: more ways may mislead a search by them, so those of one codec
  // and f32 are searched, too.
  void search_with(std::uint32_t codec, const RouteSearch& search) {
    std::vector<RouteGroup> lanes = lanes_;
    std::vector<RouteIndices> places(lanes.size());
    for (std::size_t g = 0; g < lanes.size(); ++g) {
      lanes[g].routes.clear();
      for (std::uint32_t route = 0; route < lanes_[g].routes.size(); ++route) {
        const std::uint32_t own = cost_of_route(g, route).way.codec;
        if (own != kDense && own != codec) continue;
        lanes[g].routes.push_back(lanes_[g].routes[route]);
        places[g].push_back(route);
      }
    }
    RoutePlan found = search_routes(lanes, search);
    for (std::size_t g = 0; g < lanes.size(); ++g) found.routes[g] = places[g][found.routes[g]];
    searched_.push_back(std::move(found));
  }

  void find_bounds() {
    const auto seconds = [](Nanoseconds time) { return static_cast<double>(time) / kNanoseconds; };
    const Nanoseconds free = searched_[0].time, in_order = searched_[1].time;
    found_.lanes_seconds = seconds(free);
    found_.bound_seconds = seconds(bound_routes(lanes_, free).in_any_order);
    found_.in_order_seconds = seconds(in_order);
    found_.in_order_bound_seconds = seconds(bound_routes(lanes_, in_order).in_order);
  }

  PlanRequest request_by_group(const RouteIndices& routes) {
    PlanRequest made = request_.plans;
    made.route_of.resize(tensors().size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const RouteWay& way = cost_of_route(g, routes[g]).way;
      made.routes.push_back(way.route);
      for (const std::uint32_t t : groups_[g]) {
        made.tensors[t].codec = way.codec;
        made.route_of[t] = static_cast<std::uint32_t>(g);
      }
    }
    return made;
  }

  Status compare_found() {
    for (const RoutePlan& found : searched_) {
      CINCH_TRY(compare(kByGroup, request_by_group(found.routes)));
    }
    return Ok{};
  }

  // Of several plans of one name, the fastest stays.
  Status compare(const std::string& name, PlanRequest made) {
    const auto cost = TRY(predict_useful(made, request_.costs));
    if (!cost) return Ok{};
    PlannedStep step{name, std::move(made), *cost};
    const bool is_first = found_.compared.empty() || found_.compared.back().name != name;
    if (is_first) {
      found_.compared.push_back(std::move(step));
    } else if (cost->seconds < found_.compared.back().cost.seconds) {
      found_.compared.back() = std::move(step);
    }
    return Ok{};
  }

  // The best plan of one codec, for the tensors from a size on.
  Status compare_thresholds() {
    constexpr std::size_t kMostSizes = 6;
    const auto is_of_codec = [](const PlannedStep& step) {
      return step.name != "f32" && step.name != kHalf;
    };
    const PlannedStep* best = nullptr;
    for (const PlannedStep& each : found_.compared) {
      const bool is_better = best == nullptr || each.cost.seconds < best->cost.seconds;
      if (is_of_codec(each) && is_better) best = &each;
    }
    if (best == nullptr) return Ok{};
    const PlanRequest single = best->request;
    std::set<std::int64_t> sizes;
    for (const PlanTensor& tensor : single.tensors) {
      if (tensor.codec != kDense) sizes.insert(tensor.num_elems());
    }
    const std::vector<std::int64_t> sorted(sizes.begin(), sizes.end());
    const std::size_t count = std::min(kMostSizes, sorted.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t least = sorted[i * sorted.size() / count];
      PlanRequest made = single;
      for (PlanTensor& tensor : made.tensors) {
        if (tensor.num_elems() < least) tensor.codec = kDense;
      }
      CINCH_TRY(compare(kAboveSize, std::move(made)));
    }
    return Ok{};
  }

  Status choose() {
    const PlannedStep* best = nullptr;
    for (const PlannedStep& each : found_.compared) {
      if (each.name == kHalf) continue;
      // Earlier ones are simpler.
      const bool is_better =
          best == nullptr || each.cost.seconds < kWorthGroups * best->cost.seconds;
      if (is_better) best = &each;
    }
    found_.chosen = *best;
    found_.plan = TRY(build_plan(found_.chosen.request));
    PlanSpans& spans = found_.spans;
    const Plan& plan = found_.plan;
    (void)TRY(estimate_cost(plan, request_.costs, &spans));
    describe_groups(tensor_ends(plan, spans));
    return Ok{};
  }

  // `ends`: by tensor, when its last task ends.
  void describe_groups(const std::vector<double>& ends) {
    const PlanRequest& chosen = found_.chosen.request;
    std::vector<std::pair<double, std::size_t>> order;
    double last = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      PlannedGroup& group = found_.groups.emplace_back();
      group.tensors = groups_[g];
      group.ready_seconds = ready_of(groups_[g].back());
      last = std::max(last, group.ready_seconds);
      const std::uint32_t first = groups_[g].front();
      group.way.codec = chosen.tensors[first].codec;
      group.way.route = chosen.routes.empty() ? PlanRoute{.plan = chosen.plan,
                                                          .piece_bytes = chosen.piece_bytes,
                                                          .lengths = chosen.lengths,
                                                          .option = chosen.option}
                                              : chosen.routes[chosen.route_of[first]];
      if (const Cost* cost = known_cost(g, group.way)) {
        group.encode_seconds = cost->alone.encode_seconds;
        group.network_seconds = cost->alone.network_seconds;
        group.decode_seconds = cost->alone.decode_seconds;
      }
      double end = 0;
      for (const std::uint32_t t : groups_[g]) end = std::max(end, ends[t]);
      order.emplace_back(end, g);
    }
    std::ranges::sort(order);
    for (const auto& [end, g] : order) {
      found_.groups[g].exposed_seconds = std::max(0.0, end - last);
      last = std::max(last, end);
    }
  }

  // A plan of one piece size may have one that the group alone does not need.
  const Cost* known_cost(std::size_t group, const RouteWay& way) const {
    const auto find = [&](std::string_view plan) {
      const Cost* found = nullptr;
      for (const Cost& cost : costs_[group]) {
        const PlanRoute& route = cost.way.route;
        const bool may_be = cost.way.codec == way.codec && route.plan == plan &&
                            route.device == way.route.device && route.option == way.route.option;
        if (!may_be) continue;
        const bool is_same = route.piece_bytes == way.route.piece_bytes;
        if (found == nullptr || is_same) found = &cost;
      }
      return found;
    };
    const Cost* const found = find(way.route.plan);
    // An allreduce that no transport adds up is an allgather.
    return found == nullptr && way.route.plan == "allreduce" ? find("allgather") : found;
  }

  const StepRoutesRequest& request_;
  std::vector<TensorList> groups_;
  std::vector<std::vector<Cost>> costs_;  // by group
  std::vector<RouteGroup> lanes_;         // by group
  std::map<std::tuple<std::uint32_t, std::string, std::uint64_t, LengthPolicy, OptionDevice,
                      std::size_t>,
           std::uint32_t>
      ids_;
  std::vector<ExchangeOption> numbered_options_;
  std::map<std::uint32_t, std::vector<ExchangeOption>> options_;  // by codec, beside the usual one
  std::map<
      std::pair<std::vector<std::uint32_t>, std::vector<std::pair<std::int64_t, std::int64_t>>>,
      std::vector<Cost>>
      known_costs_;
  // Where lanes take who comes first; in plan order; and with each codec alone.
  std::vector<RoutePlan> searched_;
  StepRoutes found_;
};

}  // namespace

Result<PlannedStep> plan_by_group(const StepRoutesRequest& request) {
  return StepPlanner(request).run_by_group();
}

Result<StepRoutes> plan_step(const StepRoutesRequest& request) {
  return StepPlanner(request).run();
}

}  // namespace cinch::rt
