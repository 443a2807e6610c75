// While an object of this class lives, its thread computes with the default floating-point
// environment: round to nearest, subnormals kept, no traps. Its end restores the thread's own
// modes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace cinch::rt {

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment();
  ~DefaultFloatEnvironment();
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::uint32_t saved_ = 0;
  std::uint16_t saved_x87_ = 0;
};

}  // namespace cinch::rt

namespace cinch {

// Compares floats by their bits: 0 differs from -0, and a NaN equals itself.

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Do all ranks hold the same bits?
inline bool all_same_bits(std::span<const std::vector<float>> ranks) {
  return std::ranges::all_of(ranks, [&](const auto& rank) { return same_bits(rank, ranks[0]); });
}

}  // namespace cinch
