// The report of `cinch explain` as JSON; its keys follow the promises of docs/language.md: payload,
// kernels, sweeps, bytes.
#pragma once
#include <nlohmann/json.hpp>

#include "codegen/kir/kir.h"
#include "compiler/driver/options.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/kernelize.h"
#include "dsl/sema/checked.h"
#include "dsl/source/source.h"

namespace cinch::driver {

struct ExplainInputs {
  const ir::Program& lowered;   // before passes: as people wrote it
  const ir::Program& program;   // after passes
  kir::KernelProgram& kernels;  // with costs; formulas are added to its pool
  const std::vector<codegen::SweepsApart>& apart;
  std::int64_t steps = 0;         // steps of passes and fusion
  const dsl::SourceSet& sources;  // of the program
  const sema::CheckedProgram& checked;
};

// Throws CommandError if a size cannot be evaluated.
nlohmann::json explain_report(const ExplainInputs& inputs, const ExplainOptions& options);

}  // namespace cinch::driver
