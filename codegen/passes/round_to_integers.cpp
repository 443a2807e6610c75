#include "codegen/passes/rewrites.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::InstrKind;

// The rounding whose only use is the conversion, or null.
const Instr* rounding_of(const kir::Kernel& kernel, const Definitions& made, const Instr& convert) {
  constexpr int kLeastBits = 2, kMostBits = 32;
  const bool is_short = convert.kind == InstrKind::convert && is_int(convert.dtype) &&
                        convert.dtype.bits >= kLeastBits && convert.dtype.bits <= kMostBits;
  if (!is_short) return nullptr;
  const Instr* round = made.of(convert.operands[0]);
  const bool is_rounded = round != nullptr && round->kind == InstrKind::stochastic_round &&
                          kernel.values[convert.operands[0].index()].type == kir::ComputeType::F32;
  return is_rounded ? round : nullptr;
}

bool convert_roundings(kir::Kernel& kernel, rt::StepLimit& steps) {
  const Definitions made(kernel);
  bool has_changed = false;
  for (kir::Section& section : kernel.sections) {
    if (section.kind != kir::SectionKind::Elements) continue;
    for (Instr& instr : section.instrs) {
      const Instr* round = rounding_of(kernel, made, instr);
      if (round == nullptr || !steps.may_take()) continue;
      const DType dtype = instr.dtype;
      const auto results = instr.results;
      instr = *round;
      instr.dtype = dtype;
      instr.results = results;
      has_changed = true;
    }
  }
  return has_changed;
}

}  // namespace

void round_to_integers(kir::KernelProgram& program, rt::StepLimit& steps) {
  for (kir::Kernel& kernel : program.kernels) {
    if (convert_roundings(kernel, steps)) drop_unused(kernel);
  }
}

}  // namespace cinch::codegen
