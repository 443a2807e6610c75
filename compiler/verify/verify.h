// Verification: tests the laws that a program must keep and those that it claims, each with a share
// of the time.
//
//   const Report report = verify(subject, {.seconds = 30}, [](auto& law, auto done, auto of) { …
//   });
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/verify/finding.h"
#include "compiler/verify/subject.h"

namespace cinch::verify {

struct Options {
  double seconds = 30;  // for all laws, about; each law tries at least one input
  std::uint64_t seed = 0;
  std::vector<Input> more_inputs;
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
