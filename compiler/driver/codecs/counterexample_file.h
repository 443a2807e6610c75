// Writes a counterexample: the input as .npy, and a JSON file that says which law it breaks and how
// to reproduce that.
#pragma once
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/verify/verify.h"

namespace cinch::driver {

struct CounterexampleFiles {
  std::vector<std::string> inputs;
  std::string description;            // the JSON file
  std::vector<std::string> commands;  // commands of `cinch` that show it
};

// `path` is the file for the first input. Files for further inputs, and the JSON file, have the
// same name with other endings. Throws CommandError (AtFault) if they cannot be written.
CounterexampleFiles write_counterexample(const std::string& path, const VerifyOptions& options,
                                         const rt::ProgramInfo& info,
                                         const verify::Finding& finding,
                                         const verify::Counterexample& counterexample);

}  // namespace cinch::driver
