#include "codegen/passes/rewrites.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

// The condition under which the value is 1 and otherwise 0; or none.
ValueId counted_truth(const Definitions& made, ValueId value) {
  const auto is_constant = [&](ValueId v, std::uint64_t bits) {
    const Instr* definition = made.of(v);
    return definition && definition->kind == InstrKind::constant && definition->bits == bits;
  };
  const Instr* definition = made.of(value);
  if (!definition) return {};
  if (definition->kind == InstrKind::convert && is_bool(definition->from_dtype))
    return definition->operands[0];
  const bool is_select =
      definition->kind == InstrKind::scalar && definition->scalar_op == ScalarOp::select &&
      is_constant(definition->operands[1], 1) && is_constant(definition->operands[2], 0);
  return is_select ? definition->operands[0] : ValueId();
}

}  // namespace

void count_truths(kir::KernelProgram& program, rt::StepLimit& steps) {
  for (kir::Kernel& kernel : program.kernels) {
    const Definitions made(kernel);
    bool has_changed = false;
    for (kir::Section& section : kernel.sections) {
      for (Instr& instr : section.instrs) {
        if (instr.kind != InstrKind::running_sum) continue;
        const ValueId truth = counted_truth(made, instr.operands[0]);
        if (!truth || !steps.may_take()) continue;
        instr.operands[0] = truth;
        has_changed = true;
      }
    }
    if (has_changed) drop_unused(kernel);
  }
}

}  // namespace cinch::codegen
