// A counterexample on disk: the input as .npy, and beside it a JSON file that says which law it
// breaks and how to see it.
#pragma once
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/verify/finding.h"

namespace cinch::driver {

struct CounterexampleFiles {
  std::vector<std::string> inputs;
  std::string description;            // the JSON file
  std::vector<std::string> commands;  // of `cinch`, that show it
};

// `path` is where the first input goes; more of them, and the JSON file, have its name with other
// ends. Throws CommandError (AtFault) where they cannot be written.
CounterexampleFiles write_counterexample(const std::string& path, const VerifyOptions& options,
                                         const rt::ProgramInfo& info,
                                         const verify::Finding& finding,
                                         const verify::Counterexample& counterexample);

}  // namespace cinch::driver
