// The two ends of `cinch verify`: a program as `compiler/verify` sees it, and the files of a
// counterexample.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/ir/ir.h"
#include "compiler/service/front_end.h"
#include "compiler/verify/subject.h"
#include "compiler/verify/verify.h"
#include "dsl/sema/checked.h"

namespace cinch::driver {

// A program on this machine's processor at its levels of vectors, in the interpreter and on the
// emulated GPU: a subject with the objects that it points to.
struct VerifiedProgram {
  explicit VerifiedProgram(const VerifyOptions& options);
  service::FrontEnd silent;  // shows nothing: diagnostics were shown before
  sema::CheckedProgram checked;
  ir::Program ir;
  std::optional<sema::CheckedProgram> carrier;
  verify::Subject subject;

 private:
  void add_carrier(VerifyOptions options);
};

struct CounterexampleFiles {
  std::vector<std::string> inputs;
  std::string description;            // the JSON file
  std::vector<std::string> commands;  // commands of `cinch` that show it
};

// Writes a counterexample: the input as .npy, and a JSON file that says which law it breaks and how
// to reproduce that. `path` is the file for the first input. Files for further inputs, and the JSON
// file, have the same name with other endings. Throws CommandError (AtFault) if they cannot be
// written.
CounterexampleFiles write_counterexample(const std::string& path, const VerifyOptions& options,
                                         const rt::ProgramInfo& info,
                                         const verify::Finding& finding,
                                         const verify::Counterexample& counterexample);

}  // namespace cinch::driver
