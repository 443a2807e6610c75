// A 64-bit mixing generator and plain arithmetic: no library distribution, whose values could
// differ.
#include "tests/programs/harness/gradients.h"

#include <cmath>
#include <limits>

namespace cinch::testing {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // Twelve uniforms: close enough to a normal, and exact arithmetic everywhere.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  std::uint64_t state_;
};

float value_of(DataKind kind, Random& random) {
  switch (kind) {
    case DataKind::HeavyTailed: {
      const int exponent = static_cast<int>(random.bits() % 41) - 30;
      return static_cast<float>(std::ldexp(random.uniform() - 0.5, exponent));
    }
    case DataKind::Sparse:
      return random.bits() % 20 != 0 ? 0.0f : static_cast<float>(random.normal());
    case DataKind::Constant:
      return 0.37f;
    case DataKind::Zeros:
      return random.bits() % 2 ? 0.0f : -0.0f;
    case DataKind::Subnormal:
      return static_cast<float>(random.normal() * 1e-39);
    case DataKind::Normal:
    case DataKind::NaN:
    case DataKind::Infinity:
      break;
  }
  return static_cast<float>(random.normal());
}

}  // namespace

const char* data_kind_name(DataKind kind) {
  static constexpr const char* kNames[] = {"normal", "heavy-tailed", "sparse", "constant",
                                           "zeros",  "subnormal",    "nan",    "infinity"};
  return kNames[static_cast<int>(kind)];
}

std::vector<float> make_gradient(DataKind kind, std::int64_t num_elems, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> g(static_cast<std::size_t>(num_elems));
  for (float& x : g) x = value_of(kind, random);
  if (g.empty()) return g;
  float& odd_one = g[random.bits() % g.size()];
  if (kind == DataKind::NaN) odd_one = std::numeric_limits<float>::quiet_NaN();
  if (kind == DataKind::Infinity) {
    odd_one =
        seed % 2 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
  }
  return g;
}

}  // namespace cinch::testing
