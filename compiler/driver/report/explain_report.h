// What `cinch explain` says, as JSON: the keys are those of docs/language.md's promises — payload,
// kernels, sweeps, bytes.
#pragma once
#include <nlohmann/json.hpp>

#include "codegen/kir/kir.h"
#include "compiler/driver/options.h"
#include "compiler/ir/ir.h"

namespace cinch::driver {

// `lowered` is the program before passes: what people wrote. `kernels` has its costs; formulas are
// added to its pool. Throws CommandError where a size does not evaluate.
nlohmann::json explain_report(const ir::Program& lowered, const ir::Program& program,
                              kir::KernelProgram& kernels, const ExplainOptions& options);

}  // namespace cinch::driver
