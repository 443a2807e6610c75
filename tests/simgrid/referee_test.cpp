// Steps and flows by SimGrid, beside ours.
//
// SimGrid's model CM02 shares links as we do: max-min fair, without windows and without what
// acknowledgements take. Links have no latency here: SimGrid's comes before the first byte and ours
// behind the last one, which makes up to 0.3 % where steps of a plan overlap. Work takes no time:
// what is compared is how bytes share links, and what waits for what.
//
//   simgrid_referee_test     8 and 16 ranks; with CINCH_LONG also 64 and 128
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>

#include "runtime/planner/planner.h"
#include "runtime/simulator/fabric_links.h"

namespace {

namespace sg = simgrid::s4u;
using namespace cinch::rt;

constexpr double kNic = 1.25e9;
constexpr double kMostOff = 1e-3;

// Hosts, and what joins them, on both sides.
struct Platform {
  std::string name;
  std::vector<sg::Host*> hosts;
  // By sender and receiver: numbers of links, whose speeds are beside them.
  std::map<std::pair<std::uint32_t, std::uint32_t>, FlowPath> paths;
  std::vector<double> speeds;
};

// Flows over SimGrid's own routes.
class RouteLinks : public SimulatedLinks {
 public:
  explicit RouteLinks(const Platform& platform) : platform_(platform), flows_(platform.speeds) {}

  Status send(std::uint32_t from, const SimulatedFlow& flow, std::uint64_t id) override {
    const std::size_t path = flows_.add_path(platform_.paths.at({from, flow.to}));
    flows_.start(path, static_cast<std::uint64_t>(flow.bytes), id);
    return Ok{};
  }
  double next_arrival() override {
    const Picoseconds end = flows_.next_end();
    return end == kNeverEnds ? INFINITY : static_cast<double>(end) / 1e12;
  }
  void advance(double now, std::vector<std::uint64_t>& arrived) override {
    const auto time = static_cast<Picoseconds>(std::llround(now * 1e12));
    std::vector<std::uint64_t> ended;
    flows_.advance(time, ended);
    arrived.insert(arrived.end(), ended.begin(), ended.end());
  }

 private:
  const Platform& platform_;
  FlowNetwork flows_;
};

// Plays a plan whose work takes no time, with an actor for each flow.
class Player {
 public:
  Player(const Plan& plan, const Platform& platform, const CostInputs& inputs)
      : platform_(platform), ranks_(plan.world()) {
    for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
      Rank& own = ranks_[rank];
      own.tasks = *simulated_tasks(plan, rank, inputs);
      own.next.resize(own.tasks.size());
      for (std::uint32_t t = 0; t < own.tasks.size(); ++t) {
        own.missing.push_back(own.tasks[t].after.size());
        for (const std::uint32_t earlier : own.tasks[t].after) own.next[earlier].push_back(t);
        if (own.tasks[t].kind == TaskKind::Exchange) own.exchanges.push_back(t);
      }
    }
  }

  // Called by an actor; returns when all is over.
  double run() {
    const double begin = sg::Engine::get_clock();
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::uint32_t t = 0; t < ranks_[rank].tasks.size(); ++t) {
        const bool is_ready = ranks_[rank].tasks[t].after.empty();
        if (is_ready && ranks_[rank].tasks[t].kind != TaskKind::Exchange) end(rank, t);
      }
      start(rank);
    }
    while (num_flows_ > 0) sg::this_actor::sleep_for(1e-3);
    for (const Rank& rank : ranks_) {
      if (rank.num_ended != rank.tasks.size()) return NAN;
    }
    return last_ - begin;
  }

 private:
  struct Rank {
    std::vector<SimulatedTask> tasks;
    std::vector<std::vector<std::uint32_t>> next;
    std::vector<std::size_t> missing;
    std::vector<std::uint32_t> exchanges;
    std::size_t num_started = 0, num_ended = 0, num_joined = 0;
  };
  // The k-th message that is sent is the k-th that is received.
  struct Way {
    std::vector<std::pair<std::uint32_t, bool>> sent;  // task, and whether it has arrived
    std::vector<std::uint32_t> received;
  };
  struct Meeting {
    std::map<std::uint32_t, std::uint32_t> tasks;  // by rank
    std::map<std::uint32_t, std::size_t> on_way;
    std::size_t num_joined = 0;       // behind the last of their flows, whose actors run meanwhile
    std::set<std::uint32_t> are_out;  // ranks
  };

  void flow(std::uint32_t from, std::uint32_t to, double bytes, std::function<void()> then) {
    ++num_flows_;
    sg::Host *const sender = platform_.hosts[from], *const receiver = platform_.hosts[to];
    sg::Actor::create("flow", sender, [this, sender, receiver, bytes, then = std::move(then)] {
      sg::Comm::sendto(sender, receiver, static_cast<std::uint64_t>(std::llround(bytes)));
      then();
      --num_flows_;
    });
  }

  void start(std::uint32_t rank) {
    Rank& own = ranks_[rank];
    while (own.num_started < own.exchanges.size() &&
           own.missing[own.exchanges[own.num_started]] == 0) {
      begin(rank, own.exchanges[own.num_started++]);
    }
  }

  void begin(std::uint32_t rank, std::uint32_t task) {
    const SimulatedTask& of = ranks_[rank].tasks[task];
    if (of.exchange == ExchangeKind::Send) {
      Way& way = ways_[{rank, of.peer}];
      const std::size_t number = way.sent.size();
      way.sent.emplace_back(task, false);
      flow(rank, of.peer, of.flows[0].bytes, [this, rank, number, peer = of.peer] {
        ways_[{rank, peer}].sent[number].second = true;
        match(rank, peer, number);
      });
    } else if (of.exchange == ExchangeKind::Receive) {
      Way& way = ways_[{of.peer, rank}];
      way.received.push_back(task);
      match(of.peer, rank, way.received.size() - 1);
    } else {
      join(rank, task);
    }
  }

  void match(std::uint32_t from, std::uint32_t to, std::size_t number) {
    const Way& way = ways_[{from, to}];
    if (number >= way.sent.size() || number >= way.received.size()) return;
    const auto [sent, has_arrived] = way.sent[number];
    if (!has_arrived) return;
    const std::uint32_t received = way.received[number];
    end(from, sent);
    end(to, received);
  }

  void join(std::uint32_t rank, std::uint32_t task) {
    const std::size_t number = ranks_[rank].num_joined++;
    Meeting& meeting = meetings_[number];
    meeting.tasks[rank] = task;
    for (const SimulatedFlow& each : ranks_[rank].tasks[task].flows) {
      if (std::round(each.bytes) == 0) continue;
      ++meeting.on_way[rank];
      ++meeting.on_way[each.to];
      flow(rank, each.to, each.bytes, [this, number, rank, to = each.to] {
        Meeting& of = meetings_[number];
        --of.on_way[rank];
        --of.on_way[to];
        leave(number, rank);
        leave(number, to);
      });
    }
    if (++meeting.num_joined < ranks_.size()) return;
    for (std::uint32_t each = 0; each < ranks_.size(); ++each) leave(number, each);
  }

  void leave(std::size_t number, std::uint32_t rank) {
    Meeting& meeting = meetings_[number];
    if (meeting.num_joined < ranks_.size() || meeting.on_way[rank] > 0) return;
    if (!meeting.are_out.insert(rank).second) return;
    end(rank, meeting.tasks[rank]);
  }

  void end(std::uint32_t rank, std::uint32_t task) {
    Rank& own = ranks_[rank];
    ++own.num_ended;
    last_ = sg::Engine::get_clock();
    for (const std::uint32_t later : own.next[task]) {
      if (--own.missing[later] == 0 && own.tasks[later].kind != TaskKind::Exchange) {
        end(rank, later);
      }
    }
    start(rank);
  }

  const Platform& platform_;
  std::vector<Rank> ranks_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Way> ways_;
  std::map<std::size_t, Meeting> meetings_;
  std::size_t num_flows_ = 0;
  double last_ = 0;
};

class Referee {
 public:
  explicit Referee(sg::NetZone* root) : root_(root) {}

  // Every host by a link of its own in each direction; `sites`: half of them behind one more.
  Platform switched(std::uint32_t ranks, bool has_sites) {
    Platform made;
    made.name =
        std::string(has_sites ? "two sites" : "one switch") + " of " + std::to_string(ranks);
    sg::NetZone* const zone = sg::create_full_zone(made.name);
    zone->set_parent(root_);
    std::vector<sg::Link*> links;
    const auto add = [&](double speed) {
      sg::Link* const link =
          zone->create_link(made.name + std::to_string(links.size()), speed)->set_latency(0);
      link->seal();
      links.push_back(link);
      made.speeds.push_back(speed);
      return static_cast<std::uint32_t>(links.size() - 1);
    };
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      made.hosts.push_back(zone->create_host(made.name + "h" + std::to_string(rank), 1e9));
      made.hosts.back()->seal();
      add(kNic);
      add(kNic);
    }
    const std::uint32_t there = add(0.8 * kNic), back = add(0.8 * kNic);
    for (std::uint32_t from = 0; from < ranks; ++from) {
      for (std::uint32_t to = 0; to < ranks; ++to) {
        if (from == to) continue;
        FlowPath& path = made.paths[{from, to}];
        path.links = {{2 * from, 1}, {2 * to + 1, 1}};
        const bool is_first = from < ranks / 2, is_far = has_sites && is_first != (to < ranks / 2);
        if (is_far) path.links.push_back({is_first ? there : back, 1});
        std::vector<sg::LinkInRoute> over;
        for (const FlowLink& each : path.links) over.emplace_back(links[each.link]);
        zone->add_route(made.hosts[from]->get_netpoint(), made.hosts[to]->get_netpoint(), nullptr,
                        nullptr, over, false);
      }
    }
    zone->seal();
    return made;
  }

  // Leaves of four hosts, each with a link to each of two spines.
  Platform fat_tree(std::uint32_t ranks) {
    Platform made;
    made.name = "fat tree of " + std::to_string(ranks);
    const auto add_host = [&made](sg::NetZone* zone, const std::vector<unsigned long>&,
                                  unsigned long) {
      made.hosts.push_back(
          zone->create_host(made.name + "h" + std::to_string(made.hosts.size()), 1e9));
      made.hosts.back()->seal();
      return std::pair(made.hosts.back()->get_netpoint(),
                       static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
    };
    sg::create_fatTree_zone(made.name, root_, {2, {4, ranks / 4}, {1, 2}, {1, 1}},
                            sg::ClusterCallbacks(add_host), kNic, 0,
                            sg::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
    return made;
  }
  // Behind the engine's start, when routes are known.
  static void read_routes(Platform& made) {
    if (!made.paths.empty()) return;
    std::map<sg::Link*, std::uint32_t> known;
    for (std::uint32_t from = 0; from < made.hosts.size(); ++from) {
      for (std::uint32_t to = 0; to < made.hosts.size(); ++to) {
        if (from == to) continue;
        std::vector<sg::Link*> links;
        double latency = 0;
        made.hosts[from]->route_to(made.hosts[to], links, &latency);
        FlowPath& path = made.paths[{from, to}];
        for (sg::Link* const link : links) {
          const auto [at, is_new] =
              known.try_emplace(link, static_cast<std::uint32_t>(known.size()));
          if (is_new) made.speeds.push_back(link->get_bandwidth());
          path.links.push_back({at->second, 1});
        }
      }
    }
  }

 private:
  sg::NetZone* root_;
};

Plan plan_of(const char* name, std::uint32_t ranks) {
  PlanRequest request;
  request.plan = name;
  request.world = ranks;
  request.ranks_per_machine = 4;
  // Owners have unequal parts, and three tensors overlap; with many ranks SimGrid takes minutes for
  // flows that end one by one.
  if (ranks > 16) {
    request.tensors = {{"a", std::int64_t{ranks} << 14, 1, kDense}};
    return *build_plan(request);
  }
  request.tensors = {
      {"a", 3'000'000, 1, kDense}, {"b", 1'234'567, 1, kDense}, {"c", 70'000, 1, kDense}};
  return *build_plan(request);
}

bool compare(const Platform& platform, const char* name) {
  const auto ranks = static_cast<std::uint32_t>(platform.hosts.size());
  const Plan plan = plan_of(name, ranks);
  CostInputs inputs;
  inputs.network = shaped_network(ranks, {0, kNic});
  inputs.make_links = [&]() -> std::unique_ptr<SimulatedLinks> {
    return std::make_unique<RouteLinks>(platform);
  };
  const auto ours = estimate_cost(plan, inputs);
  const double theirs = Player(plan, platform, inputs).run();
  const double seconds = ours ? ours->seconds : NAN;
  const double off = seconds / theirs - 1;
  const bool is_same = std::abs(off) <= kMostOff;
  std::printf("%-18s %-13s ours %.6f ms, SimGrid %.6f ms, off by %+.4f %%%s\n",
              platform.name.c_str(), name, 1e3 * seconds, 1e3 * theirs, 100 * off,
              is_same ? "" : "  TOO FAR");
  return is_same;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const char* const is_long = std::getenv("CINCH_LONG");
  const bool has_all = is_long != nullptr && *is_long != '\0';
  sg::Engine engine(&argc, argv);
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/TCP-gamma:0");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("contexts/stack-size:128");
  sg::NetZone* const root = sg::create_full_zone("root");
  Referee referee(root);
  std::vector<Platform> platforms;
  for (const std::uint32_t ranks : {8U, 16U, 64U, 128U}) {
    if (ranks > 16 && !has_all) continue;
    platforms.push_back(referee.switched(ranks, false));
    platforms.push_back(referee.switched(ranks, true));
    platforms.push_back(referee.fat_tree(ranks));
  }
  root->seal();
  bool are_same = true;
  sg::Actor::create("referee", platforms[0].hosts[0], [&] {
    for (Platform& platform : platforms) {
      Referee::read_routes(platform);
      for (const char* const plan : {"two_shot", "ring", "allgather", "tree", "hierarchical"}) {
        // SimGrid takes minutes for each all-to-all of 128.
        const std::string_view name = plan;
        const bool has_all_pairs = name == "two_shot" || name == "allgather";
        if (platform.hosts.size() > 64 && has_all_pairs) continue;
        are_same = compare(platform, plan) && are_same;
      }
    }
  });
  engine.run();
  return are_same ? 0 : 1;
}
