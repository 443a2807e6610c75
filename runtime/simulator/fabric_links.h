// The links of a topology, for simulations of steps.
#pragma once
#include <memory>

#include "runtime/planner/plan_cost.h"
#include "runtime/simulator/topology.h"

namespace cinch::rt {

class FabricLinks : public SimulatedLinks {
 public:
  /// For the topology's first `num_ranks` ranks. `topology` outlives this, and so does `carried`:
  /// when this ends, by link of the topology, the bytes that it has carried. It may be null.
  FabricLinks(const Topology& topology, std::uint32_t num_ranks,
              std::vector<double>* carried = nullptr);
  ~FabricLinks() override;

  Status send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, std::uint64_t id) override;
  double next_arrival() override;
  void advance(double now, std::vector<std::uint64_t>& arrived) override;

 private:
  // When a last byte that has left its links is there, and the id of its bytes.
  using Arrival = std::pair<Picoseconds, std::uint64_t>;
  struct Sent {
    std::uint64_t id = 0;
    Picoseconds latency = 0;
  };
  // A way that was found before.
  struct Known {
    std::size_t path = 0;
    Picoseconds latency = -1;  // below 0: not yet
  };
  Picoseconds next();

  const Topology& topology_;
  std::uint32_t num_ranks_;
  std::vector<double>* carried_;
  FlowNetwork flows_;
  std::vector<Known> known_;  // by sender and receiver
  std::vector<Sent> sent_;    // by number of the flow
  std::vector<std::uint64_t> ended_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

}  // namespace cinch::rt
