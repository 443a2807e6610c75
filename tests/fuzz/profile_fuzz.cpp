// libFuzzer target: profiles. Times of every profile that is read are finite and do not fall, and a
// shape has as many elements as its tensor.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "runtime/planner/ready_profile.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cinch::rt;
  const auto profile = parse_profile("profile", {reinterpret_cast<const char*>(data), size});
  if (!profile) return 0;
  if (profile->tensors.empty()) std::abort();
  double before = 0;
  std::set<std::string> names;
  for (const ReadyTensor& tensor : profile->tensors) {
    const bool is_time =
        std::isfinite(tensor.ready_seconds) && tensor.ready_seconds >= before - 2e-6;
    if (!is_time || !(tensor.spread_seconds >= 0)) std::abort();
    before = tensor.ready_seconds;
    if (tensor.name.empty() || !names.insert(tensor.name).second) std::abort();
    double elems = 1;
    for (const std::int64_t length : tensor.shape) elems *= static_cast<double>(length);
    const bool is_shape = tensor.shape.empty() || elems == static_cast<double>(tensor.num_elems);
    if (tensor.num_elems < 0 || !is_shape) std::abort();
  }
  return 0;
}
