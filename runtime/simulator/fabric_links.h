// The links of a topology, for simulations of steps.
#pragma once
#include <memory>

#include "runtime/planner/plan_cost.h"
#include "runtime/simulator/topology.h"

namespace cinch::rt {

class FabricLinks : public SimulatedLinks {
 public:
  /// `topology` outlives this.
  explicit FabricLinks(const Topology& topology);

  Status send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, std::uint64_t id) override;
  double next_arrival() override;
  void advance(double now, std::vector<std::uint64_t>& arrived) override;

  /// By link of the topology.
  const std::vector<double>& carried_bytes() const { return flows_.carried_bytes(); }

 private:
  // When a last byte that has left its links is there, and the id of its bytes.
  using Arrival = std::pair<Picoseconds, std::uint64_t>;
  struct Sent {
    std::uint64_t id = 0;
    Picoseconds latency = 0;
  };
  Picoseconds next();

  const Topology& topology_;
  FlowNetwork flows_;
  std::vector<Sent> sent_;  // by number of the flow
  std::vector<std::uint64_t> ended_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

}  // namespace cinch::rt
