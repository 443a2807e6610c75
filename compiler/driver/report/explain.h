// `cinch explain`: its report as JSON, and the text that is made from it.
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "codegen/kir/kir.h"
#include "compiler/driver/front_end.h"
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

// The report. Its keys follow the promises of docs/language.md: payload, kernels, sweeps, bytes.
// Throws CommandError if a size cannot be evaluated.
nlohmann::json explain_report(const ExplainInputs& inputs, const ExplainOptions& options);

/// First numbers for the given size, then what each sweep reads, does and writes, and why
/// neighbouring sweeps are not fused. No line is longer than `width` (at least 60). `with_places`:
/// also shows where in the text the value is for which a sweep waits, and how many steps the
/// compiler took.
std::string explanation_text(const nlohmann::json& report, std::size_t width, bool with_places);

/// `cinch explain --formulas`: sizes, bounds and bytes as formulas of n and the parameters.
/// `with_fusion`: also tells why neighbouring sweeps are not fused. Lines longer than `width` are
/// broken.
std::string formulas_text(const nlohmann::json& report, bool with_fusion, std::size_t width);

// `cinch explain --device cuda`: the resources that the kernels need on a GPU. Adds `arch` and
// `gpu_kernels` to the report: compiles the program for options.target, for this
// machine's GPU, or for sm_90. Throws CommandError if there is no NVRTC.
void add_gpu_report(FrontEnd& front_end, const ExplainOptions& options, nlohmann::json& report);
// A table of the kernels; lines are no longer than `width`, from 60 on.
std::string gpu_report_text(const nlohmann::json& report, std::size_t width);

}  // namespace cinch::driver
