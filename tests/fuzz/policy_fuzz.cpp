// libFuzzer target: policies. Every policy that is read gives each tensor exactly one choice.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/planner/policy.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cinch::rt;
  const auto policy = parse_policy({reinterpret_cast<const char*>(data), size});
  if (!policy) return 0;
  const std::vector<PolicyTensor> tensors = {
      {"conv.weight", {64, 3, 7, 7}}, {"fc.bias", {100}}, {"", {}}, {"[a-", {0, 5}}};
  const PolicyResult result = apply_policy(*policy, tensors);
  std::vector<int> uses(tensors.size());
  for (const std::uint32_t tensor : result.off) ++uses.at(tensor);
  for (const PolicyResult::Sent& sent : result.sent) {
    ++uses.at(sent.tensor);
    if (sent.codec != kDense && sent.codec >= result.codecs.size()) std::abort();
    if (sent.route >= result.routes.size()) std::abort();
  }
  for (const int uses_of_one : uses) {
    if (uses_of_one != 1) std::abort();
  }
  return 0;
}
