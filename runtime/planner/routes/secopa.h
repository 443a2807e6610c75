// SeCoPa's choice for one gradient: is it compressed, and in how many partitions? From costs that
// are affine in the number of elements, without regard to other gradients.
// Source: HiPress (SOSP 2021), and its released planner.
#pragma once
#include <cstdint>

namespace cinch::rt {

/// Milliseconds for so many FP32 elements, but no less than the floor.
struct AffineCost {
  double weight = 0, bias = 0, floor = 0;
  double at(double elems) const;
};

struct SecopaCosts {
  double payload_part = 1;  // bytes of a payload, of those of f32
  AffineCost encode, decode;
  AffineCost gather, broadcast;  // parameter servers: from all nodes, to all nodes
  AffineCost send;               // a ring's step
};

enum class SecopaTopology : std::uint8_t { ParameterServers, Ring };

struct SecopaChoice {
  bool is_compressed = false;
  std::uint32_t partitions = 1;
  double milliseconds = 0;
};

/// The cheapest choice of 1 to `nodes` partitions. Equal costs: f32, and fewer partitions.
SecopaChoice choose_partitions(const SecopaCosts& costs, SecopaTopology topology,
                               std::uint32_t nodes, std::int64_t elems);

}  // namespace cinch::rt
