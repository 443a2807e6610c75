// Ranks that stand for many, in plans that are simulated and never run.
//
// Ranks come in units: single ranks, or the ranks of a machine. Units that behave alike are a
// class. Of a class two units are written, one whose tasks are looked at and one that stands for
// all others; of a class of one unit, that one. The usual builders then write the plan of the
// written ranks, and what it says of a unit counts as often as the unit's weight says.
#pragma once
#include <cstdint>
#include <vector>

namespace cinch::rt {

inline constexpr std::uint32_t kNotWritten = UINT32_MAX;

struct StandIns {
  struct Unit {
    std::uint32_t unit_class = 0;
    double weight = 1;      // units that it stands for
    bool is_rest = false;   // stands for all but the first of its class
    double class_size = 1;  // units of its class
    bool has_rest = false;  // has its class two units here?
  };
  std::uint32_t world = 1;  // ranks in all
  std::uint32_t ranks_per_unit = 1;
  std::vector<Unit> units;  // those of a class one behind the other
  /// By rank of the world: the written rank that owns what it owns, or kNotWritten.
  std::vector<std::uint32_t> written;
  /// Is every rank written? Then all are alike, and rank 0 has their tasks: those of a ring.
  bool is_circle = false;
  std::uint32_t num_classes = 1;  // of ranks, if they form a circle

  const Unit& unit_of(std::uint32_t written_rank) const {
    return units[written_rank / ranks_per_unit];
  }
};

}  // namespace cinch::rt
