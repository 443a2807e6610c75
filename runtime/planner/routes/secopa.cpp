#include "runtime/planner/routes/secopa.h"

#include <algorithm>

namespace cinch::rt {

double AffineCost::at(double elems) const {
  return std::max(floor, weight * elems + bias);
}

namespace {

double raw_cost(const SecopaCosts& costs, SecopaTopology topology, std::uint32_t nodes,
                double elems) {
  if (topology == SecopaTopology::Ring) return 2.0 * (nodes - 1) * costs.send.at(elems);
  return costs.gather.at(elems) + costs.broadcast.at(elems);
}

// `elems` of each of so many partitions. Partitions travel at once, or one behind the other in a
// pipeline, so that one of them stands for all.
double compressed_cost(const SecopaCosts& costs, SecopaTopology topology, std::uint32_t nodes,
                       std::uint32_t partitions, double elems) {
  const double sent = costs.payload_part * elems;
  const bool is_ring = topology == SecopaTopology::Ring;
  const std::uint32_t encodes = is_ring ? nodes : std::min(partitions + 1, nodes);
  const std::uint32_t decodes = is_ring ? nodes : std::min(nodes - 1 + partitions, 2 * (nodes - 1));
  return raw_cost(costs, topology, nodes, sent) + encodes * costs.encode.at(elems) +
         decodes * costs.decode.at(sent);
}

}  // namespace

SecopaChoice choose_partitions(const SecopaCosts& costs, SecopaTopology topology,
                               std::uint32_t nodes, std::int64_t elems) {
  SecopaChoice best;
  for (const bool is_compressed : {false, true}) {
    for (std::uint32_t partitions = 1; partitions <= nodes; ++partitions) {
      const double part = static_cast<double>(elems) / partitions;
      const double cost = is_compressed ? compressed_cost(costs, topology, nodes, partitions, part)
                                        : raw_cost(costs, topology, nodes, part);
      const bool is_first = !is_compressed && partitions == 1;
      if (is_first || cost < best.milliseconds) best = {is_compressed, partitions, cost};
    }
  }
  return best;
}

}  // namespace cinch::rt
