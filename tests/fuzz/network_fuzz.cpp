// libFuzzer target: measurements of a network. A model that is read survives its own text, and its
// predictions are valid times.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "runtime/planner/network/network_model.h"
#include "runtime/planner/plan_cost.h"
#include "runtime/planner/planner.h"
#include "tests/fuzz/target.h"

namespace {

using namespace cinch::rt;

Plan dense_plan(const char* name) {
  PlanRequest request;
  request.plan = name;
  request.world = 3;
  request.tensors = {{"large", 50000, 1, kDense}, {"bias", 10, 1, kDense}};
  request.piece_bytes = 64 << 10;
  return std::move(*build_plan(request));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Plan kPlans[] = {dense_plan("ring"), dense_plan("two_shot"),
                                dense_plan("allreduce")};
  const auto model = network_from_json({reinterpret_cast<const char*>(data), size});
  if (!model) return 0;
  const auto again = network_from_json(network_to_json(*model));
  if (!again || network_to_json(*again) != network_to_json(*model)) std::abort();
  CostInputs inputs;
  inputs.network = *model;
  for (const Plan& plan : kPlans) {
    const auto cost = estimate_cost(plan, inputs);
    if (cost && (!std::isfinite(cost->seconds) || cost->seconds < 0)) std::abort();
  }
  return 0;
}
