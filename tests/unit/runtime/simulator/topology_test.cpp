// Topologies as files, and the ways of bytes through them.
#include "runtime/simulator/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cinch::rt {
namespace {

using nlohmann::json;

json sample() {
  return json::parse(R"({
    "file": "cinch topology", "format": 1,
    "ranks_per_machine": 2, "machines_per_leaf": 2, "spines": 3,
    "machine": {"gigabits": 800, "latency_us": 0.5},
    "nic": {"gigabits": 100, "latency_us": 1},
    "uplink": {"gigabits": 200, "latency_us": 0.25},
    "sites": [{"machines": 4}, {"machines": 2}],
    "joins": [{"sites": [0, 1], "gigabits": 10, "latency_us": 30000, "loss": 0.0001}]})");
}

Topology read(const json& file) {
  auto topology = topology_from_json(file.dump());
  EXPECT_TRUE(topology) << (topology ? "" : topology.error().message);
  return std::move(*topology);
}

std::vector<std::string> names(const Topology& topology, const FabricRoute& route) {
  std::vector<std::string> found;
  for (const FlowLink& link : route.path.links) found.push_back(topology.name_of(link.link));
  std::ranges::sort(found);
  return found;
}

using Names = std::vector<std::string>;

TEST(Topology, KnowsMachinesLeavesAndSites) {
  const Topology topology = read(sample());
  EXPECT_EQ(topology.num_ranks(), 12U);
  EXPECT_EQ(topology.leaf_of(3), 0U);
  EXPECT_EQ(topology.leaf_of(4), 1U);
  EXPECT_EQ(topology.leaf_of(8), 2U);
  EXPECT_EQ(topology.site_of(7), 0U);
  EXPECT_EQ(topology.site_of(8), 1U);
}

TEST(Topology, RoutesWithinAMachineALeafASiteAndBetweenSites) {
  const Topology topology = read(sample());
  const auto machine = *topology.route(0, 1);
  EXPECT_EQ(names(topology, machine),
            (Names{"rank0 in its machine out", "rank1 in its machine in"}));
  EXPECT_EQ(machine.latency, 500'000);
  const auto leaf = *topology.route(1, 2);
  EXPECT_EQ(names(topology, leaf), (Names{"rank1 out", "rank2 in"}));
  EXPECT_EQ(leaf.latency, 2'000'000);
  const auto fabric = *topology.route(0, 5);
  EXPECT_EQ(names(topology, fabric),
            (Names{"leaf0-spine0 up", "leaf0-spine1 up", "leaf0-spine2 up", "leaf1-spine0 down",
                   "leaf1-spine1 down", "leaf1-spine2 down", "rank0 out", "rank5 in"}));
  EXPECT_EQ(fabric.latency, 2'500'000);
  const auto far = *topology.route(9, 1);
  EXPECT_EQ(names(topology, far), (Names{"rank1 in", "rank9 out", "site0-site1 in"}));
  EXPECT_EQ(far.latency, 30'002'000'000);
  // 1.22 * 1460 bytes in 60 ms, by the root of the loss.
  EXPECT_NEAR(far.path.most_bytes_per_second, 1.22 * 1460 / 0.06 / 0.01, 1);
}

TEST(Topology, GoesRoundLinksThatAreDown) {
  json file = sample();
  file["links"] = {{{"link", "leaf1-spine2"}, {"share", 0}}, {{"link", "rank3"}, {"share", 0.5}}};
  const Topology topology = read(file);
  EXPECT_EQ(names(topology, *topology.route(0, 5)),
            (Names{"leaf0-spine0 up", "leaf0-spine1 up", "leaf1-spine0 down", "leaf1-spine1 down",
                   "rank0 out", "rank5 in"}));
  EXPECT_EQ(topology.speeds_of_rank(3)[2], 100e9 / 8 / 2);
  EXPECT_EQ(topology.speeds_of_rank(2)[2], 100e9 / 8);
}

TEST(Topology, RefusesWhatIsNoFabric) {
  const auto edited = [](const char* pointer, const json& value) {
    json file = sample();
    file[json::json_pointer(pointer)] = value;
    const auto topology = topology_from_json(file.dump());
    return topology ? std::string() : topology.error().message;
  };
  EXPECT_EQ(edited("/sites/0/machines", 3), "site 0: 3 machines do not fill leaves of 2");
  EXPECT_EQ(edited("/nic/gigabits", 0), "topology: nic.gigabits: is not above 0: 0");
  EXPECT_EQ(edited("/joins/0/sites/1", 2), "topology: joins[0].sites[1]: is more than 1: 2");
  EXPECT_EQ(edited("/joins/0/sites/1", 0), "topology: joins[0].sites: are the same site");
  EXPECT_EQ(edited("/joins/0/loss", 1), "topology: joins[0].loss: is not a share below 1: 1");
  EXPECT_EQ(edited("/ranks_per_machine", 0), "topology: ranks_per_machine: is not above 0: 0");
  EXPECT_EQ(edited("/sites", json::array()), "topology: sites: has no site");
  EXPECT_EQ(edited("/links", json::array({{{"link", "leaf9-spine0"}, {"share", 0}}})),
            "there is no link leaf9-spine0");
  json file = sample();
  for (int spine = 0; spine < 3; ++spine) {
    file["links"].push_back({{"link", "leaf0-spine" + std::to_string(spine)}, {"share", 0}});
  }
  const auto route = read(file).route(0, 5);
  ASSERT_FALSE(route);
  EXPECT_EQ(route.error().message, "no spine joins leaf 0 and leaf 1");
  file = sample();
  file["links"] = {{{"link", "rank3"}, {"share", 0}}};
  EXPECT_EQ(read(file).route(3, 5).error().message,
            "rank 3 does not reach rank 5: rank3 out is down");
  EXPECT_TRUE(read(file).route(3, 2));
  EXPECT_EQ(edited("/sites/0/machines", 1 << 20),
            "site 0: 2097152 ranks so far, at most 131072 are described");
  EXPECT_EQ(edited("/spines", 1 << 20),
            "3 leaves of 1048576 spines each: at most 1048576 links "
            "join them");
  EXPECT_EQ(edited("/nic/gigabits", 1e-9),
            "topology: nic.gigabits: is less than a kilobit a second");
  EXPECT_EQ(edited("/links", json::array({{{"link", "rank0"}, {"share", 1e-300}}})),
            "topology: links[0].share: is nearly nothing");
  file = sample();
  file.erase("joins");
  EXPECT_EQ(read(file).route(0, 11).error().message, "no link joins site 0 and site 1");
  const std::string text = sample().dump();
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(topology_from_json(text.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace cinch::rt
