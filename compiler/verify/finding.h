// The result of a law: whether it held, by which figure and bound, and if not, an input that shows
// it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/verify/inputs.h"

namespace cinch::verify {

/// How `cinch run` shows the finding (or `cinch sync`, if payloads are added).
struct Counterexample {
  std::vector<Input> inputs;       // steps, or ranks, in order
  std::vector<std::size_t> order;  // the input of each step; empty: each once
  bool are_ranks = false;
  std::uint64_t seed = 0, step = 0;
  // Arguments of the runs that differ; one entry for a single run
  std::vector<std::string> arguments;
  std::string shows;           // what to look at in their output
  bool adds_payloads = false;  // for ranks: the transport adds their payloads
};

struct Finding {
  std::string law;
  bool holds = true;
  /// The law holds if `figure` is not above `bound` (for density: as `detail` says).
  double figure = 0, bound = 0;
  std::string detail;  // what the figure measures, and where it is worst
  std::string cut;     // what the budget left out; empty: nothing
  std::optional<Counterexample> counterexample;
};

}  // namespace cinch::verify
