#include "codegen/passes/marks.h"

#include "codegen/kir/text/text.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

[[noreturn]] void refuse(const kir::KernelProgram& program, const kir::Kernel& kernel,
                         const kir::Instr& instr, const std::string& stage) {
  const char* fact = instr.is_alike ? "alike" : "compact";
  InternalError error(
      InternalErrorKind::Bug,
      "kernel " + kernel.info.symbol + ": not " + fact + ": " + kir::print(program, kernel, instr),
      "codegen/passes/check_facts.cpp");
  error.attach(stage, kir::print(program, kernel));
  throw error;
}

void check_beside(const kir::KernelProgram& program, std::span<const rt::Step> steps,
                  const std::string& stage) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const rt::Step& step = steps[i];
    for (const auto* inner : {&step.cond, &step.body, &step.orelse}) {
      check_beside(program, *inner, stage);
    }
    if (step.kind != rt::StepKind::Launch || step.index2 == rt::kNoIndex) continue;
    if (step.index2 <= steps.size() - i && run_beside(program, steps.subspan(i, step.index2))) {
      continue;
    }
    InternalError error(InternalErrorKind::Bug, "launches beside one another that may not be",
                        "codegen/passes/check_facts.cpp");
    error.attach(stage, kir::print(program));
    throw error;
  }
}

}  // namespace

void check_facts(const kir::KernelProgram& program, const std::string& stage) {
  kir::KernelProgram shown;
  shown.kernels = program.kernels;  // the passes read nothing else
  mark_alike(shown);
  mark_compact(shown);
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const kir::Kernel& kernel = program.kernels[k];
    for (std::size_t s = 0; s < kernel.sections.size(); ++s) {
      for (std::size_t i = 0; i < kernel.sections[s].instrs.size(); ++i) {
        const kir::Instr& said = kernel.sections[s].instrs[i];
        const kir::Instr& found = shown.kernels[k].sections[s].instrs[i];
        if (said.is_alike > found.is_alike || said.is_compact > found.is_compact)
          refuse(program, kernel, said, stage);
      }
    }
  }
  for (const rt::Entry& entry : program.entries) check_beside(program, entry.steps, stage);
}

}  // namespace cinch::codegen
