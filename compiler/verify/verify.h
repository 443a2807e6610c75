// Verification: tests the laws that a program must keep and those that it claims, each with a share
// of the time.
//
//   const Report report = verify(subject, {.seconds = 30}, [](auto& law, auto done, auto of) { …
//   });
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/verify/subject.h"

namespace cinch::verify {

/// How `cinch run` shows the finding (or `cinch sync`, if it names a plan).
struct Counterexample {
  std::vector<Input> inputs;       // steps, or ranks, in order
  std::vector<std::size_t> order;  // the input of each step; empty: each once
  bool are_ranks = false;
  std::uint64_t seed = 0, step = 0;
  // Arguments of the runs that differ; one entry for a single run
  std::vector<std::string> arguments;
  std::string shows;  // what to look at in their output
  std::string plan;   // for ranks: the plan of `cinch sync`; empty: they only decode
};

/// The result of a law: whether it held, by which figure and bound, and if not, an input that shows
/// it.
struct Finding {
  std::string law;
  bool holds = true;
  /// The law holds if `figure` is not above `bound` (for density: as `detail` says).
  double figure = 0, bound = 0;
  std::string detail;  // what the figure measures, and where it is worst
  std::string cut;     // what the budget left out; empty: nothing
  std::optional<Counterexample> counterexample;

  /// Counts a failure in `figure`; true for the first, which the finding then shows.
  bool is_first_failure() {
    figure += 1;
    return std::exchange(holds, false);
  }
};

struct Options {
  double seconds = 30;  // for all laws, about; each law tries at least one input, if there is time
  std::uint64_t seed = 0;
  std::vector<Input> more_inputs;
  // After twice the seconds and these, laws end in the midst of an input.
  double more_seconds = 20;
};

struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> not_claimed;  // laws that would have run if the program had claimed them
  bool all_hold() const;
};

/// `before` is called with the name of each law, its number and the number of laws; false ends.
using BeforeLaw = std::function<bool(const std::string&, std::size_t, std::size_t)>;

Report verify(const Subject& subject, const Options& options, const BeforeLaw& before);

}  // namespace cinch::verify
