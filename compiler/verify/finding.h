// What a law found: held or not, by which figure against which bound, and where it did not hold an
// input that shows it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/verify/inputs.h"

namespace cinch::verify {

/// How `cinch run`, or `cinch sync` where payloads are added, shows what was found.
struct Counterexample {
  std::vector<Input> inputs;       // steps, or ranks, in order
  std::vector<std::size_t> order;  // which input each step takes; empty: each once
  bool are_ranks = false;
  std::uint64_t seed = 0, step = 0;
  std::vector<std::string> arguments;  // of the runs that differ; one run where there is one
  std::string shows;                   // what to look at in what they give
  bool adds_payloads = false;          // of ranks: the transport adds their payloads
};

struct Finding {
  std::string law;
  bool holds = true;
  /// Holds where `figure` is not above `bound` (of density: within what `detail` says).
  double figure = 0, bound = 0;
  std::string detail;  // what the figure is of, and where it is worst
  std::string cut;     // what the budget left out; empty: nothing
  std::optional<Counterexample> counterexample;
};

}  // namespace cinch::verify
