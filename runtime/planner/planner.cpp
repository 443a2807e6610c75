#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "runtime/core/log.h"
#include "runtime/planner/builders/builders.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {
namespace {

// How many owners the bundles of a plan have.
enum class Owners : std::uint8_t { One, EveryRank, Servers };

// The option without any compression, in f32.
ExchangeOption dense_hierarchical_option() {
  return {{OptionAction::ReduceScatter, OptionScope::Intra},
          {OptionAction::AllReduce, OptionScope::Inter},
          {OptionAction::AllGather, OptionScope::Intra}};
}

struct Builder {
  std::string_view name;
  Owners owners;
  void (*build)(const BundleContext&);
  bool encodes_sums = true;
};

constexpr std::array kBuilders = {
    Builder{"allreduce", Owners::One, build_allreduce, false},
    Builder{"allgather", Owners::One, build_allgather, false},
    Builder{"two_shot", Owners::EveryRank, build_two_shot},
    Builder{"ring", Owners::EveryRank, build_ring},
    Builder{"ps", Owners::Servers, build_ps},
    Builder{"tree", Owners::One, build_tree},
    Builder{"hierarchical", Owners::EveryRank, build_hierarchical},
};

// Its result differs between ranks, so plans are not chosen from it.
constexpr Builder kReduceScatter{"reduce_scatter", Owners::EveryRank, build_reduce_scatter, false};

const Builder* find_builder(std::string_view name) {
  if (name == kReduceScatter.name) return &kReduceScatter;
  const auto* const found = std::ranges::find(kBuilders, name, &Builder::name);
  return found == kBuilders.end() ? nullptr : found;
}

std::uint32_t num_owners(const PlanRequest& request, Owners owners) {
  switch (owners) {
    case Owners::One:
      return 1;
    case Owners::EveryRank:
      return request.world;
    case Owners::Servers:
      return static_cast<std::uint32_t>(request.servers.size());
  }
  return 1;
}

// To a program, parts are tensors of their own.
Status check_parts_of(const PlanRequest& request, const PlanTensor& tensor) {
  const bool is_scattered = request.routes.empty() && request.plan == kReduceScatter.name;
  if (!is_scattered && !tensor.part_ends.empty()) {
    return invalid(tensor.name + ": only the plan reduce_scatter gives ranks parts");
  }
  if (is_scattered && tensor.codec != kDense && !request.codecs[tensor.codec].can_cut) {
    return invalid(
        fmt::format("{}: {} does not take the plan reduce_scatter: it compresses whole "
                    "tensors, not parts of them",
                    tensor.name, request.codecs[tensor.codec].name));
  }
  const auto& ends = tensor.part_ends;
  const bool are_parts =
      ends.empty() || (ends.size() == request.world && ends.front() >= 0 &&
                       ends.back() == tensor.num_elems() && std::ranges::is_sorted(ends));
  if (are_parts) return Ok{};
  return invalid(fmt::format("{}: {} ends of parts that do not cover {} elements of {} ranks",
                             tensor.name, ends.size(), tensor.num_elems(), request.world));
}

Result<const Builder*> builder_named(std::string_view plan) {
  if (const Builder* const builder = find_builder(plan)) return builder;
  std::vector<std::string_view> names = {kReduceScatter.name};
  for (const Builder& each : kBuilders) names.push_back(each.name);
  const std::string_view near = nearest_name(plan, names);
  return invalid(fmt::format("there is no plan {}{}; there are {}, reduce_scatter", plan,
                             near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                             fmt::join(plan_names(), ", ")));
}

Status check_routes(const PlanRequest& request) {
  if (request.routes.empty()) {
    if (request.route_of.empty()) return Ok{};
    return invalid("tensors take routes, and there are none");
  }
  if (request.route_of.size() != request.tensors.size()) {
    return invalid(fmt::format("{} routes are taken by {} tensors", request.route_of.size(),
                               request.tensors.size()));
  }
  for (std::size_t t = 0; t < request.tensors.size(); ++t) {
    if (request.route_of[t] < request.routes.size()) continue;
    return invalid(fmt::format("{} takes route {} of {}", request.tensors[t].name,
                               request.route_of[t], request.routes.size()));
  }
  const auto is_scattered = [](const PlanRoute& route) {
    return route.plan == kReduceScatter.name;
  };
  if (std::ranges::none_of(request.routes, is_scattered)) return Ok{};
  return invalid("reduce_scatter is a plan for all tensors, and no route");
}

Status check_request(const PlanRequest& request, std::span<const Builder* const> builders) {
  if (request.world == 0) return invalid("a plan without ranks");
  if (request.rank && *request.rank >= request.world) {
    return invalid(fmt::format("there is no rank {} of {}", *request.rank, request.world));
  }
  const std::set<std::uint32_t> servers(request.servers.begin(), request.servers.end());
  const bool are_servers = !servers.empty() && servers.size() == request.servers.size() &&
                           *servers.rbegin() < request.world;
  const auto has_servers = [](const Builder* each) { return each->owners == Owners::Servers; };
  if (std::ranges::any_of(builders, has_servers) && !are_servers) {
    return invalid(
        fmt::format("servers are different ranks below {}, at least one", request.world));
  }
  const std::uint32_t on_each = request.ranks_per_machine;
  if (on_each == 0 || request.world % on_each != 0) {
    return invalid(fmt::format("{} ranks are not machines of {} each", request.world, on_each));
  }
  for (const PlanTensor& tensor : request.tensors) {
    if (tensor.codec != kDense && tensor.codec >= request.codecs.size()) {
      return invalid(tensor.name + " has a codec that is not there");
    }
    CINCH_TRY(check_parts_of(request, tensor));
  }
  return Ok{};
}

class Planner {
 public:
  /// `builders`: of the routes.
  Planner(const PlanRequest& request, std::vector<PlanRoute> routes,
          std::vector<const Builder*> builders)
      : request_(request), builders_(std::move(builders)) {
    for (std::size_t i = 0; i < routes.size(); ++i) {
      const Owners owners = builders_[i]->owners;
      routes_.push_back(
          {std::move(routes[i]), num_owners(request, owners), owners == Owners::EveryRank});
    }
  }

  Result<Plan> run() {
    plan_.tensors = request_.tensors;
    name_plans();
    place_tensors();
    add_parts();
    auto bundles = TRY(lay_out(request_, routes_, plan_));
    CINCH_TRY(check_carriers());
    std::vector<Bundle*> of_sums;
    for (Bundle& bundle : bundles) {
      if (builders_[bundle.route]->encodes_sums) of_sums.push_back(&bundle);
    }
    CINCH_TRY(add_carriers(request_, plan_, of_sums));
    number(bundles);
    plan_.ranks.resize(request_.world);
    for (std::uint32_t rank = 0; rank < request_.world; ++rank) {
      if (!is_wanted(rank)) continue;
      for (const Bundle& bundle : bundles) {
        RankBuilder to(plan_, plan_.ranks[rank]);
        CINCH_TRY(build(bundle, rank, to));
      }
      interleave_bundles(plan_, plan_.ranks[rank]);
    }
    return std::move(plan_);
  }

  Result<std::vector<WholeTensor>> find_wholes() {
    plan_.tensors = request_.tensors;
    std::vector<WholeTensor> wholes;
    CINCH_TRY(lay_out(request_, routes_, plan_, &wholes));
    return wholes;
  }

 private:
  bool is_wanted(std::uint32_t rank) const {
    if (request_.stand_ins) {
      return request_.stand_ins->is_circle ? rank == 0 : !request_.stand_ins->unit_of(rank).is_rest;
    }
    return !request_.rank || rank == 0 || rank == *request_.rank;
  }

  void name_plans() {
    plan_.name = routes_[0].route.plan;
    const auto has_name = [this](const LaidRoute& each) { return each.route.plan == plan_.name; };
    if (std::ranges::all_of(routes_, has_name)) return;
    plan_.name = "routes";
    for (std::uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      plan_.tensors[t].plan = routes_[route_of(request_, t)].route.plan;
    }
  }

  // f32 is not worth a copy, and where ranks meet in a `sync` they do so on their device.
  void place_tensors() {
    for (std::uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      const std::uint32_t codec = plan_.tensors[t].codec;
      const bool encodes = codec != kDense && !request_.codecs[codec].has_sync;
      const OptionDevice device = routes_[route_of(request_, t)].route.device;
      plan_.tensors[t].on_cpus = encodes && device == OptionDevice::Cpu;
    }
  }

  // Equal parts if the request has none.
  void add_parts() {
    const std::int64_t world = request_.world;
    for (PlanTensor& tensor : plan_.tensors) {
      if (plan_.name != kReduceScatter.name || !tensor.part_ends.empty()) continue;
      const std::int64_t elems = tensor.num_elems();
      for (std::int64_t i = 1; i <= world; ++i)
        tensor.part_ends.push_back(elems / world * i + elems % world * i / world);
    }
  }

  void number(const std::vector<Bundle>& bundles) {
    for (std::uint32_t b = 0; b < bundles.size(); ++b) {
      for (const std::uint32_t group : bundles[b].groups) plan_.groups[group].bundle = b;
      for (const std::uint32_t group : bundles[b].carriers) plan_.groups[group].bundle = b;
    }
  }

  // The caller of the planner provides the programs that carry sums.
  Status check_carriers() const {
    for (std::uint32_t t = 0; t < request_.tensors.size(); ++t) {
      const PlanTensor& tensor = request_.tensors[t];
      const bool encodes_sums = builders_[route_of(request_, t)]->encodes_sums;
      if (tensor.codec == kDense || !encodes_sums) continue;
      const CodecFacts& codec = request_.codecs[tensor.codec];
      const bool is_there = codec.carrier.kind != CarrierKind::Program ||
                            codec.carrier_codec < request_.codecs.size();
      if (is_there) continue;
      return invalid(fmt::format("{} carries sums by {}, which is not among the programs",
                                 codec.name, codec.carrier.text));
    }
    return Ok{};
  }

  Status build(const Bundle& bundle, std::uint32_t rank, RankBuilder& to) const {
    const std::uint32_t codec = plan_.groups[bundle.groups[0]].codec;
    BundleContext context{plan_,
                          bundle,
                          to,
                          rank,
                          request_.world,
                          request_.servers,
                          is_sized(bundle),
                          request_.ranks_per_machine,
                          codec == kDense ? dense_hierarchical_option() : route(bundle).option,
                          {}};
    if (codec != kDense) {
      context.has_exact_sums = request_.codecs[codec].carrier.kind == CarrierKind::Exact;
      context.are_sums_sized = bundle.carriers.empty() ? context.is_sized : are_sums_sized(bundle);
      // The largest power of two that is at most 1 / world.
      if (request_.codecs[codec].sends_shares())
        context.narrowing =
            std::ldexp(1.0f, -static_cast<int>(std::bit_width(request_.whole_world() - 1)));
    }
    if (codec != kDense && request_.codecs[codec].has_sync) return build_sync(context);
    const Builder& builder = *builders_[bundle.route];
    if (builder.build != build_allreduce || codec == kDense) {
      builder.build(context);
      return Ok{};
    }
    if (!request_.codecs[codec].sum_arrays) {
      build_allgather(context);
      return Ok{};
    }
    context.sum_arrays = TRY(sum_arrays(bundle.groups[0]));
    build_summed(context);
    return Ok{};
  }

  // The same under every plan.
  Status build_sync(const BundleContext& context) const {
    std::vector<Protocol> protocols;
    for (const std::uint32_t group : context.bundle.groups) {
      const CodecFacts& codec = request_.codecs[plan_.groups[group].codec];
      if (!codec.sync_rounds) {
        context.to.synchronise(group);
        continue;
      }
      const PlanTensor& tensor = plan_.tensors[plan_.pieces[plan_.groups[group].pieces[0]].tensor];
      auto rounds = TRY(rounds_of(codec, tensor));
      protocols.push_back({group, std::move(rounds)});
    }
    build_protocols(context, protocols);
    return Ok{};
  }

  // The arrays of all pieces of the group, one after the other.
  Result<std::vector<SumArray>> sum_arrays(std::uint32_t group) const {
    std::vector<SumArray> all;
    const CodecFacts& codec = request_.codecs[plan_.groups[group].codec];
    for (const std::uint32_t piece : plan_.groups[group].pieces) {
      const Piece& of = plan_.pieces[piece];
      const PieceShape shape = shape_of(plan_.tensors[of.tensor], of.num_elems);
      auto arrays = TRY(codec.sum_arrays(shape.rows, shape.cols));
      if (all.empty()) {
        all = std::move(arrays);
        continue;
      }
      for (std::size_t i = 0; i < all.size(); ++i) all[i].num_elems += arrays[i].num_elems;
    }
    return all;
  }

  const PlanRoute& route(const Bundle& bundle) const { return routes_[bundle.route].route; }
  bool is_sized(const Bundle& bundle) const { return are_sized(bundle.groups, route(bundle)); }
  bool are_sums_sized(const Bundle& bundle) const {
    return are_sized(bundle.carriers, route(bundle));
  }
  // Do messages of these groups have lengths?
  bool are_sized(const std::vector<std::uint32_t>& groups, const PlanRoute& route) const {
    const std::uint32_t codec = plan_.groups[groups[0]].codec;
    if (codec == kDense || request_.codecs[codec].has_fixed_size) return false;
    if (route.lengths != LengthPolicy::Auto) return route.lengths == LengthPolicy::Exchanged;
    return std::ranges::any_of(
        groups, [this](std::uint32_t group) { return message_bytes(plan_, group) > kPaddedBytes; });
  }

  const PlanRequest& request_;
  std::vector<const Builder*> builders_;
  std::vector<LaidRoute> routes_;
  Plan plan_;
};

Result<Planner> planner_of(const PlanRequest& request) {
  CINCH_TRY(check_routes(request));
  std::vector<PlanRoute> routes = request.routes;
  if (routes.empty()) {
    routes.push_back({.plan = request.plan,
                      .piece_bytes = request.piece_bytes,
                      .lengths = request.lengths,
                      .option = request.option});
  }
  std::vector<const Builder*> builders;
  builders.reserve(routes.size());
  for (const PlanRoute& route : routes) builders.push_back(TRY(builder_named(route.plan)));
  CINCH_TRY(check_request(request, builders));
  return Planner(request, std::move(routes), std::move(builders));
}

// Writes a plan without checking that its codecs take it.
Result<Plan> write_plan(const PlanRequest& request) {
  return TRY(planner_of(request)).run();
}

std::optional<PlanRefusal> refusal_of(const PlanRequest& request, const Plan& plan) {
  std::vector<SumRules> rules;
  rules.reserve(request.codecs.size());
  for (const CodecFacts& codec : request.codecs) rules.push_back(codec.sum_rules());
  return find_refusal(plan, rules);
}

// The name of the plan that the codec's tensors were to take.
std::string refused_plan(const PlanRequest& request, std::uint32_t codec, const Plan& plan) {
  for (const PlanTensor& tensor : plan.tensors) {
    if (tensor.codec == codec && !tensor.plan.empty() && encodes_sums(tensor.plan)) {
      return tensor.plan;
    }
  }
  return request.routes.empty() ? request.plan : plan.name;
}

tl::unexpected<Error> refuse(PlanRequest request, const PlanRefusal& refusal,
                             const std::string& refused) {
  const CodecFacts& codec = request.codecs[refusal.codec];
  const bool is_of_sums = refusal.why == PlanRefusal::Why::PartialSums;
  const std::string why =
      is_of_sums ? "its finish is not linear in the sum, so the payloads of all ranks are decoded "
                   "and added"
                 : codec.carrier.text;
  request.routes.clear();
  request.route_of.clear();
  std::vector<std::string_view> taken;
  for (const std::string_view name : plan_names()) {
    request.plan = name;
    const auto other = write_plan(request);
    if (other && !refusal_of(request, *other)) taken.push_back(name);
  }
  return invalid(fmt::format("{} does not take the plan {}: {}; it takes {}", codec.name, refused,
                             why, fmt::join(taken, ", ")));
}

using Indices = std::vector<std::uint32_t>;

// A bundle's next round comes after the round before of `ahead` bundles: these are on the links
// while it is computed.
Indices order_of(const Indices& bundles, const std::vector<Task>& tasks, std::uint32_t ahead) {
  Indices order(bundles.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t t) {
    return std::tuple(bundles[t] + ahead * tasks[t].round, tasks[t].round, t);
  });
  return order;
}

Indices places_in(const Indices& order) {
  Indices places(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  return places;
}

}  // namespace

namespace {
constexpr std::array<std::string_view, 3> kLengthNames = {"auto", "padded", "exchanged"};
}  // namespace

std::string_view length_policy_name(LengthPolicy policy) {
  return kLengthNames.at(static_cast<std::size_t>(policy));
}

std::optional<LengthPolicy> length_policy_named(std::string_view name) {
  const auto* const found = std::ranges::find(kLengthNames, name);
  if (found == kLengthNames.end()) return std::nullopt;
  return static_cast<LengthPolicy>(found - kLengthNames.begin());
}

ExchangeOption usual_hierarchical_option() {
  return {{OptionAction::ReduceScatter, OptionScope::Intra},
          {OptionAction::Compress},
          {OptionAction::AllToAll, OptionScope::Inter, OptionDevice::Gpu, true},
          {OptionAction::Decompress},
          {OptionAction::Compress},
          {OptionAction::AllGather, OptionScope::Inter, OptionDevice::Gpu, true},
          {OptionAction::Decompress},
          {OptionAction::AllGather, OptionScope::Intra}};
}

std::span<const std::string_view> plan_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kBuilders.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kBuilders[i].name;
    return names;
  }();
  return kNames;
}

Result<Plan> build_plan(const PlanRequest& request) {
  auto plan = TRY(write_plan(request));
  if (const auto refusal = refusal_of(request, plan)) {
    return refuse(request, *refusal, refused_plan(request, refusal->codec, plan));
  }
  return plan;
}

Result<std::optional<Plan>> build_plan_if_taken(const PlanRequest& request) {
  auto plan = TRY(write_plan(request));
  if (refusal_of(request, plan)) return std::nullopt;
  return std::move(plan);
}

// As many ranks as there are, none of which is written.
Result<std::vector<WholeTensor>> find_whole_tensors(PlanRequest request) {
  auto stand_ins = std::make_shared<StandIns>();
  stand_ins->world = request.world;
  stand_ins->written.assign(request.world, kNotWritten);
  request.stand_ins = std::move(stand_ins);
  request.world = request.ranks_per_machine = 1;
  auto planner = TRY(planner_of(request));
  return planner.find_wholes();
}

bool encodes_sums(std::string_view plan) {
  const Builder* const builder = find_builder(plan);
  return builder == nullptr || builder->encodes_sums;
}

std::string_view usual_plan(const PlanRequest& request) {
  std::set<std::uint32_t> used;
  for (const PlanTensor& tensor : request.tensors) {
    const bool is_of_payloads = tensor.codec != kDense && !request.codecs[tensor.codec].has_sync;
    if (is_of_payloads) used.insert(tensor.codec);
  }
  const auto all = [&](const auto& is_so) {
    return std::ranges::all_of(used,
                               [&](std::uint32_t codec) { return is_so(request.codecs[codec]); });
  };
  const bool are_summed = !used.empty() && all([&request](const CodecFacts& c) {
    return c.sum_arrays != nullptr && (c.do_sums_fit() || request.world == 1);
  });
  if (are_summed) return "allreduce";
  const bool are_carried =
      all([](const CodecFacts& c) { return c.carrier.kind != CarrierKind::None; });
  return are_carried ? "two_shot" : "allgather";
}

void interleave_bundles(const Plan& plan, RankPlan& rank) {
  Indices bundles;
  for (const Task& task : rank.tasks) bundles.push_back(plan.groups[task.groups[0]].bundle);
  const Indices order = order_of(bundles, rank.tasks, kBundlesAhead), place = places_in(order);
  std::vector<Task> tasks;
  tasks.reserve(order.size());
  for (const std::uint32_t t : order) {
    Task& task = tasks.emplace_back(std::move(rank.tasks[t]));
    for (std::uint32_t& earlier : task.after) earlier = place[earlier];
    std::ranges::sort(task.after);
  }
  rank.tasks = std::move(tasks);
}

std::vector<std::uint32_t> order_of_tasks(const Plan& plan, std::uint32_t rank,
                                          const std::vector<std::uint32_t>& place_of_tensor,
                                          std::uint32_t ahead) {
  // By bundle: the place of its last tensor, and its number, by which bundles of one tensor keep
  // their order.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bundles;
  for (const Group& group : plan.groups) {
    while (bundles.size() <= group.bundle) {
      bundles.emplace_back(0, static_cast<std::uint32_t>(bundles.size()));
    }
    for (const std::uint32_t piece : group.pieces) {
      std::uint32_t& last = bundles[group.bundle].first;
      last = std::max(last, place_of_tensor[plan.pieces[piece].tensor]);
    }
  }
  std::ranges::sort(bundles);
  Indices number(bundles.size());
  for (std::uint32_t i = 0; i < bundles.size(); ++i) number[bundles[i].second] = i;
  const auto& tasks = plan.ranks[rank].tasks;
  Indices of_task;
  for (const Task& task : tasks) of_task.push_back(number[plan.groups[task.groups[0]].bundle]);
  return places_in(order_of(of_task, tasks, ahead));
}

}  // namespace cinch::rt
