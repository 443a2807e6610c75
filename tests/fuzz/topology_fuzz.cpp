// libFuzzer target: topologies as JSON and of htsim. What is read has ways between its ranks, or
// says why not, and steps over it end.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "runtime/simulator/fabric_step.h"
#include "tests/fuzz/target.h"

namespace {

using namespace cinch::rt;

// A step of a few ranks costs little, whatever the fabric is.
constexpr std::uint32_t kMostRanks = 16;

void take_step(const Topology& topology, bool has_classes) {
  FabricStep step;
  step.request.plan = "two_shot";
  step.request.world = std::min(topology.num_ranks(), kMostRanks);
  step.request.tensors = {{"a", 50'000, 1, kDense}};
  step.inputs.network = shaped_network(step.request.world, {1e-6, 1e9});
  step.has_classes = has_classes;
  const auto made = simulate_on_fabric(topology, step);
  if (made && (!std::isfinite(made->cost.seconds) || made->cost.seconds < 0)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto topology = topology_from_text({reinterpret_cast<const char*>(data), size});
  if (!topology) return 0;
  for (std::uint32_t link = 0; link < topology->num_links(); link += 1 + link / 2) {
    if (topology->name_of(link).empty() || topology->speed(link) < 0) std::abort();
  }
  const std::uint32_t last = topology->num_ranks() - 1;
  for (std::uint32_t to = last; to > 0; to /= 2) {
    const auto route = topology->route(0, to);
    if (route && (route->latency < 0 || route->path.links.empty())) std::abort();
  }
  take_step(*topology, false);
  take_step(*topology, true);
  return 0;
}
