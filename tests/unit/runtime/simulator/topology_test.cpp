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

TEST(Topology, GoesThroughTheCoreBetweenPods) {
  json file = sample();
  file["sites"] = {{{"machines", 8}}};
  file.erase("joins");
  file["spines"] = 2;
  file["leaves_per_pod"] = 2;
  file["core"] = {{"gigabits", 400}, {"latency_us", 2}};
  const Topology topology = read(file);
  EXPECT_EQ(topology.ranks_of_pod(1), std::pair(8U, 16U));
  const auto route = *topology.route(0, 15);
  EXPECT_EQ(names(topology, route),
            (Names{"leaf0-spine0 up", "leaf0-spine1 up", "leaf3-spine0 down", "leaf3-spine1 down",
                   "pod0-spine0 up", "pod0-spine1 up", "pod1-spine0 down", "pod1-spine1 down",
                   "rank0 out", "rank15 in"}));
  EXPECT_EQ(route.latency, 6'500'000);
  EXPECT_EQ(topology.route(0, 7)->latency, 2'500'000);
  file["links"] = {{{"link", "pod1-spine0"}, {"share", 0}}};
  EXPECT_EQ(names(read(file), *read(file).route(0, 15)),
            (Names{"leaf0-spine1 up", "leaf3-spine1 down", "pod0-spine1 up", "pod1-spine1 down",
                   "rank0 out", "rank15 in"}));
  file["leaves_per_pod"] = 3;
  EXPECT_EQ(topology_from_json(file.dump()).error().message,
            "site 0: 4 leaves do not fill pods of 3");
}

constexpr const char* kFatTree = R"(# 64 hosts
Nodes 64
tiers 3
Podsize 16
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4   # hosts
Radix_Up 4
Queue_Up 100
Downlink_Latency_ns 500
Switch_Latency_ns 100
Tier 1
Downlink_speed_Gbps 200
Radix_Down 4
Radix_Up 2
Bundle 2
Downlink_Latency_ns 600
Switch_Latency_ns 300
Tier 2
Downlink_speed_Gbps 400
Radix_Down 8
Downlink_Latency_ns 700
Switch_Latency_ns 400
)";

TEST(Topology, ReadsFatTreesOfHtsim) {
  const auto read_tree = topology_from_text(kFatTree);
  ASSERT_TRUE(read_tree) << read_tree.error().message;
  const Topology& tree = *read_tree;
  EXPECT_EQ(tree.num_ranks(), 64U);
  EXPECT_EQ(tree.shape().machines_per_leaf, 4U);
  EXPECT_EQ(tree.shape().leaves_per_pod, 4U);
  EXPECT_EQ(tree.shape().spines, 2U);  // each by a bundle of two links
  EXPECT_EQ(tree.shape().nic.bytes_per_second, 12.5e9);
  EXPECT_EQ(tree.shape().uplink.bytes_per_second, 50e9);
  EXPECT_EQ(tree.shape().core.bytes_per_second, 100e9);
  // Links and switches of the way, in nanoseconds.
  EXPECT_EQ(tree.route(0, 1)->latency, 1000 * (2 * 500 + 100));
  EXPECT_EQ(tree.route(0, 5)->latency, 1000 * (2 * (500 + 600) + 2 * 100 + 300));
  EXPECT_EQ(tree.route(0, 63)->latency, 1000 * (2 * (500 + 600 + 700) + 2 * (100 + 300) + 400));
}

TEST(Topology, RefusesWhatIsNoFatTree) {
  const auto edited = [](const std::string& from, const std::string& to) {
    std::string text = kFatTree;
    text.replace(text.find(from), from.size(), to);
    const auto made = topology_from_text(text);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(edited("Nodes 64", "Nodes 63"), "site 0: 63 machines do not fill leaves of 4");
  EXPECT_EQ(edited("Nodes 64", "Nodes -1"),
            "topology: line 2: nodes is not a number from 0 to 1000000");
  EXPECT_EQ(edited("Nodes 64", "Hosts 64"), "topology: line 2: hosts is not known here");
  EXPECT_EQ(edited("Nodes 64", "Nodes 0"), "topology: Nodes is not above 0");
  EXPECT_EQ(topology_from_text("null").error().message, "topology: line 1: null is not known here");
  EXPECT_EQ(edited("tiers 3", "tiers 4"), "topology: Tiers are 2 or 3");
  EXPECT_EQ(edited("Podsize 16", "Podsize 15"),
            "topology: pods of 15 hosts do not fill leaves of 4");
  EXPECT_EQ(edited("Radix_Up 4", "Oversubscribed 3"),
            "topology: tier 0 has no whole number of links up");
  EXPECT_EQ(edited("Radix_Up 4", "Oversubscribed 1"), "");
  EXPECT_EQ(edited("Downlink_speed_Gbps 200", ""),
            "topology: tier 1 needs downlink_speed_gbps and radix_down above 0");
  EXPECT_EQ(edited("Bundle 2", "Bundle 3"),
            "topology: tier 0 has links up that do not fill bundles");
  EXPECT_EQ(edited("Radix_Down 4   # hosts", "Radix_Down 4.5"),
            "topology: line 7: radix_down is a whole number");
  EXPECT_EQ(edited("Nodes 64", "Nodes 64 65"), "topology: line 2: more than a word and a number");
  const std::string text = kFatTree;
  for (std::size_t size = 0; size < text.size(); ++size) {
    (void)topology_from_text(text.substr(0, size));
  }
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
  EXPECT_EQ(edited("/nic/latency_ms", 1), "topology: nic.latency_ms: is not known");
  file = sample();
  file["joins"].push_back({{"sites", {1, 0}}, {"gigabits", 1}});
  EXPECT_EQ(topology_from_json(file.dump()).error().message,
            "topology: joins[1]: joins two sites that are joined already");
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
