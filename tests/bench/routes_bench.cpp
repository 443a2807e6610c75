// The search of routes on models whose gradients were timed, with the costs of Espresso's simulator
// (EuroSys 2023): is a plan ever worse than simpler ones, how far is it from the bound, and how
// much processor time do both take? And windows of few tensors against all combinations.
//
//   bench_routes tests/bench/profiles [windows]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/planner/routes/route_search.h"
#include "runtime/planner/routes/route_states.h"

namespace {

using namespace cinch::rt;  // NOLINT(google-build-using-namespace): one short program

// Microseconds for KB = 1000 bytes, and for each step of a collective.
struct Network {
  const char* name;
  double within, between, step;
};
constexpr Network kNetworks[] = {{"NVLink", 0.02, 0.2, 150}, {"PCIe", 0.4, 0.8, 150}};
constexpr double kMachines = 8, kPerMachine = 8, kCpuGbits = 20;

// Microseconds for a shard of 2^20 elements, and the part of f32's bytes that is sent.
struct Compressor {
  const char* name;
  double encode, decode, encode_whole, decode_whole, part;
};
constexpr Compressor kCompressors[] = {{"random-k", 54, 34, 900, 100, 0.02},
                                       {"DGC", 356, 34, 1300, 100, 0.02},
                                       {"EF-sign", 130, 140, 390, 420, 1 / 32.0}};
constexpr double kTableElems = 1 << 20;

Nanoseconds ns(double microseconds) {
  return static_cast<Nanoseconds>(std::llround(microseconds * 1e3));
}

// A table's value for shards up to its size, and in proportion above.
double scaled(double microseconds, double elems) {
  return microseconds * std::max(1.0, elems / kTableElems);
}

double milliseconds_of_cpu() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::vector<ProfiledTensor> tensors_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<ProfiledTensor> tensors;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::stringstream cells(line);
    std::string order, name, elems, gap;
    std::getline(cells, order, ',');
    std::getline(cells, name, ',');
    std::getline(cells, elems, ',');
    std::getline(cells, gap, ',');
    tensors.push_back({std::stoll(elems), ns(std::stod(gap))});
  }
  if (tensors.empty()) throw std::runtime_error("no tensors in " + path);
  return tensors;
}

// f32; two exchanges between machines, of encoded shards and of their encoded sums; or one, of all
// machines' encoded shards; both also with CPUs. And encoded within machines, too.
std::vector<Route> routes_of(std::int64_t num_elems, const Network& network,
                             const Compressor& compressor, bool has_whole) {
  const auto elems = static_cast<double>(num_elems);
  const double kb = 4 * elems / 1000, shard = elems / kPerMachine;
  const double within = (kPerMachine - 1) / kPerMachine * kb * network.within + network.step / 2;
  const double ring = 2 * (kMachines - 1) / kMachines * kb * network.between + network.step;
  const double all_to_all =
      (kMachines - 1) / kMachines * compressor.part * kb * network.between + network.step / 2;
  const double gathered =
      (kMachines - 1) * compressor.part * kb * network.between + network.step / 2;
  const double encode = scaled(compressor.encode, shard), decode = scaled(compressor.decode, shard);
  const double cpu_encode = elems * 32 / (kCpuGbits * 1e3), cpu_decode = cpu_encode / 5;
  const RouteStage in{RouteLane::Gather, ns(within)}, out{RouteLane::Spread, ns(within)};
  const auto exchange = [&](double microseconds) {
    return RouteStage{RouteLane::Exchange, ns(microseconds)};
  };
  std::vector<Route> routes = {{0, 0, {in, exchange(ring), out}}};
  for (const bool on_cpu : {false, true}) {
    const RouteLane encoder = on_cpu ? RouteLane::Cpu : RouteLane::Encode;
    const RouteLane decoder = on_cpu ? RouteLane::Cpu : RouteLane::Decode;
    const double one = on_cpu ? cpu_encode : encode, back = on_cpu ? cpu_decode : decode;
    const std::uint32_t id = on_cpu ? 3 : 1;
    routes.push_back(
        {id,
         3,
         {in, {encoder, ns(one * 1.125)}, exchange(2 * all_to_all), {decoder, ns(2 * back)}, out}});
    routes.push_back(
        {id + 1,
         4,
         {in, {encoder, ns(one)}, exchange(gathered), {decoder, ns(back * kMachines / 2)}, out}});
  }
  if (has_whole) {
    const double first = scaled(compressor.encode_whole / 2, elems / 4);
    const double second = scaled(compressor.encode_whole, shard) / 2;
    const double last = scaled(compressor.decode_whole, shard) / 2;
    const double small = within * compressor.part + network.step / 2;
    routes.push_back({5,
                      5,
                      {{RouteLane::Encode, ns(first)},
                       {RouteLane::Gather, ns(small)},
                       {RouteLane::Encode, ns(second)},
                       exchange(all_to_all),
                       {RouteLane::Decode, ns(last)},
                       exchange(all_to_all),
                       {RouteLane::Spread, ns(small)},
                       {RouteLane::Decode, ns(last)}}});
  }
  return routes;
}

struct Shares {
  double sum = 0, worst = 0;
  int count = 0;
  void add(double share) {
    sum += share;
    worst = std::max(worst, share);
    ++count;
  }
  double mean() const { return sum / count; }
};

double above(Nanoseconds time, Nanoseconds base) {
  return 100 * (static_cast<double>(time) / static_cast<double>(base) - 1);
}

constexpr std::int64_t kLeastElems = 1 << 16;  // what a message costs more than
constexpr const char* kModels[] = {"vgg16", "resnet101", "ugatit", "bert_base", "gpt2", "lstm"};

struct Totals {
  Shares uniform, threshold, espresso, gap, any_gap, search_ms, bound_ms;
  int never_worse = 0, within_3 = 0, within_20_ms = 0, within_2_s = 0;
};

std::string row(const std::string& model, const Network& network, const Compressor& compressor,
                const std::vector<ProfiledTensor>& tensors, Totals& totals) {
  std::vector<RouteGroup> groups = join_small(tensors, kLeastElems);
  for (RouteGroup& group : groups) {
    group.routes = routes_of(group.num_elems, network, compressor, false);
  }
  std::vector<double> times;
  RoutePlan plan;
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<RouteGroup> pruned = groups;
    const double begun = milliseconds_of_cpu();
    prune_routes(pruned);
    plan = search_routes(pruned);
    times.push_back(milliseconds_of_cpu() - begun);
    if (turn == 4) groups = std::move(pruned);
  }
  std::sort(times.begin(), times.end());
  const RouteStarts starts = route_starts(groups);
  const double begun = milliseconds_of_cpu();
  const RouteBound bound = bound_routes(groups, plan.time);
  const double bound_ms = milliseconds_of_cpu() - begun;
  const double gap = above(plan.time, bound.in_order), any = above(plan.time, bound.in_any_order);
  totals.uniform.add(above(starts.uniform.time, plan.time));
  totals.threshold.add(above(starts.threshold.time, plan.time));
  totals.espresso.add(above(starts.espresso.time, plan.time));
  totals.gap.add(gap);
  totals.any_gap.add(any);
  totals.search_ms.add(times[2]);
  totals.bound_ms.add(bound_ms);
  const Nanoseconds least = std::min(
      {starts.dense.time, starts.uniform.time, starts.threshold.time, starts.espresso.time});
  totals.never_worse += plan.time <= least ? 1 : 0;
  totals.within_3 += gap <= 3 ? 1 : 0;
  totals.within_20_ms += times[2] <= 20 ? 1 : 0;
  totals.within_2_s += bound_ms <= 2000 ? 1 : 0;
  return fmt::format(
      "| {} | {} | {} | {} | {:.1f} | +{:.1f} | +{:.1f} | +{:.1f} | {:.2f} | {:.1f} | {:.1f} | "
      "{:.0f} |",
      model, network.name, compressor.name, groups.size(), static_cast<double>(plan.time) / 1e6,
      above(starts.uniform.time, plan.time), above(starts.threshold.time, plan.time),
      above(starts.espresso.time, plan.time), gap, any, times[2], bound_ms);
}

void all_models(const std::string& folder) {
  Totals totals;
  fmt::print(
      "| model | network | compressor | groups | step, ms | one route, % | from a size on, % | "
      "Algorithms 1, 2, % | above the bound, % | above any order's, % | search, ms | bound, ms |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const char* model : kModels) {
    const auto tensors = tensors_of(fmt::format("{}/{}.csv", folder, model));
    for (const Network& network : kNetworks) {
      for (const Compressor& compressor : kCompressors) {
        fmt::print("{}\n", row(model, network, compressor, tensors, totals));
      }
    }
  }
  const auto said = [](const Shares& of) {
    return fmt::format("{:.2f}, {:.1f}", of.mean(), of.worst);
  };
  fmt::print(
      "\n{} cases. Never worse: {}; within 3 % of the bound: {}; searched within 20 ms: {}; "
      "bounded "
      "within 2 s: {}.\nMean and worst: one route +{} %, from a size on +{} %, Algorithms 1 and 2 "
      "+{} %; above the bound {} %, above any order's {} %; search {} ms, bound {} ms.\n",
      totals.gap.count, totals.never_worse, totals.within_3, totals.within_20_ms, totals.within_2_s,
      said(totals.uniform), said(totals.threshold), said(totals.espresso), said(totals.gap),
      said(totals.any_gap), said(totals.search_ms), said(totals.bound_ms));
}

Nanoseconds best_of_all(const std::vector<RouteGroup>& groups) {
  RouteIndices routes(groups.size(), 0);
  Nanoseconds best = INT64_MAX;
  for (std::size_t at = 0; at < groups.size();) {
    best = std::min(best, time_of(groups, routes));
    for (at = 0; at < groups.size() && ++routes[at] == groups[at].routes.size(); ++at) {
      routes[at] = 0;
    }
  }
  return best;
}

void windows(const std::string& folder, std::size_t length, int count) {
  std::vector<std::vector<RouteGroup>> models;
  for (const char* model : kModels) {
    models.push_back(join_small(tensors_of(fmt::format("{}/{}.csv", folder, model)), kLeastElems));
  }
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  Shares gap;
  int missed = 0, wrong_bounds = 0;
  while (gap.count < count) {
    const auto& model = models[below(models.size())];
    Network network = kNetworks[below(2)];
    constexpr double kBetween[] = {0.1, 0.2, 0.4, 0.8}, kSteps[] = {30, 150};
    network.between = kBetween[below(4)];
    network.step = kSteps[below(2)];
    if (model.size() < length) continue;
    const std::size_t first = below(model.size() - length + 1);
    std::vector<RouteGroup> groups(model.begin() + static_cast<std::ptrdiff_t>(first),
                                   model.begin() + static_cast<std::ptrdiff_t>(first + length));
    groups[0].backward = 0;
    const Compressor& compressor = kCompressors[below(3)];
    for (RouteGroup& group : groups) {
      group.routes = routes_of(group.num_elems, network, compressor, true);
    }
    const Nanoseconds best = best_of_all(groups);
    const RoutePlan plan = search_routes(groups);
    const RouteBound bound = bound_routes(groups, plan.time);
    wrong_bounds += bound.in_order > best || bound.in_any_order > best ? 1 : 0;
    missed += plan.time > best ? 1 : 0;
    gap.add(above(plan.time, best));
  }
  fmt::print(
      "{} windows of {} tensors, 6 routes: mean gap {:.4f} %, worst {:.2f} %, {} missed, {} bounds "
      "above the best\n",
      count, length, gap.mean(), gap.worst, missed, wrong_bounds);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print("usage: bench_routes FOLDER [windows]\n");
    return 2;
  }
  if (argc > 2) {
    windows(argv[1], 4, 400);
    windows(argv[1], 5, 200);
  } else {
    all_models(argv[1]);
  }
  return 0;
} catch (const std::exception& error) {
  (void)std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
