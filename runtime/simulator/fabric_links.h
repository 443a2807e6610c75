// The links of a topology, for simulations of steps.
#pragma once
#include <memory>
#include <queue>

#include "runtime/planner/plan_cost.h"
#include "runtime/simulator/pair_routes.h"
#include "runtime/simulator/rank_classes.h"
#include "runtime/simulator/topology.h"

namespace cinch::rt {

class FabricLinks : public SimulatedLinks {
 public:
  /// A simulated rank is a class. `topology` outlives this, and so does `carried`: when this ends,
  /// by link of the topology, the bytes that it has carried. It may be null.
  /// `routes`: of single ranks; null: flows are sprayed.
  FabricLinks(const Topology& topology, std::shared_ptr<const RankClasses> classes,
              std::vector<double>* carried = nullptr,
              std::shared_ptr<const PairRoutes> routes = nullptr);
  /// For the topology's first `num_ranks` ranks, each for itself.
  FabricLinks(const Topology& topology, std::uint32_t num_ranks,
              std::vector<double>* carried = nullptr);
  ~FabricLinks() override;

  Status send(std::uint32_t from, const SimulatedFlow& flow, std::uint64_t id) override;
  double next_arrival() override;
  void advance(double now, std::vector<std::uint64_t>& arrived) override;

 private:
  // When a last byte that has left its links is there, and the number of its transfer.
  using Arrival = std::pair<Picoseconds, std::uint64_t>;
  // A link of the topology among those that are alike, and how many these are.
  struct Shared {
    std::uint32_t link = 0;
    double num_alike = 1;
  };
  // Flows of one distance, which have the same rate.
  struct Way {
    std::size_t path = 0;
    Picoseconds latency = 0;
  };
  struct Sent {
    std::size_t transfer = 0;
    Picoseconds latency = 0;
  };
  struct Transfer {
    std::uint64_t id = 0;
    std::uint32_t num_on_way = 0;
  };

  Shared shared(std::uint32_t link) const;
  /// Of all members of a class at once.
  Result<const std::vector<Way>*> ways(std::uint32_t from, const SimulatedFlow& flow);
  Result<Way> way_of(std::uint32_t from, const RankClasses::Seen& seen, double copies);
  Picoseconds next();
  /// In picoseconds. Seconds of long steps do not tell single ones apart, so what next_arrival has
  /// said is what it has meant.
  Picoseconds time_of(double seconds) const;

  const Topology& topology_;
  const std::shared_ptr<const RankClasses> classes_;
  const std::shared_ptr<const PairRoutes> routes_;
  std::vector<double>* carried_;
  /// Do all leaves have the same links to all spines, which all flows use alike? Each leaf has one
  /// link then.
  bool are_spines_one_;
  std::uint32_t first_leaf_link_, first_core_link_, first_join_link_;
  FlowNetwork flows_;
  // By sender, receiver, scope and copies.
  std::map<std::tuple<std::uint32_t, std::uint32_t, FlowScope, double>, std::vector<Way>> known_;
  Picoseconds now_ = 0, said_ = 0;  // said: by next_arrival
  std::vector<Sent> sent_;          // by number of the flow
  std::vector<Transfer> transfers_;
  std::vector<std::uint64_t> ended_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

}  // namespace cinch::rt
