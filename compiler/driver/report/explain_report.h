// What `cinch explain` says, as JSON: the keys are those of docs/language.md's promises — payload,
// kernels, sweeps, bytes.
#pragma once
#include <nlohmann/json.hpp>

#include "codegen/kir/kir.h"
#include "compiler/driver/options.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/fusion_report.h"
#include "dsl/sema/checked.h"
#include "dsl/source/source.h"

namespace cinch::driver {

struct ExplainInputs {
  const ir::Program& lowered;   // before passes: what people wrote
  const ir::Program& program;   // behind them
  kir::KernelProgram& kernels;  // with costs; formulas are added to its pool
  const std::vector<codegen::SweepsApart>& apart;
  std::int64_t steps = 0;         // that passes and fusion took
  const dsl::SourceSet& sources;  // of the program
  const sema::CheckedProgram& checked;
};

// Throws CommandError where a size does not evaluate.
nlohmann::json explain_report(const ExplainInputs& inputs, const ExplainOptions& options);

}  // namespace cinch::driver
