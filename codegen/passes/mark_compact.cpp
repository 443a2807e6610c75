#include "codegen/passes/marks.h"

#include <algorithm>

#include "codegen/passes/rewrites.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

bool is_scalar(const Instr* instr, ScalarOp op) {
  return instr && instr->kind == InstrKind::scalar && instr->scalar_op == op;
}

class CompactStores {
 public:
  explicit CompactStores(const kir::Kernel& kernel) : kernel_(kernel), made_(kernel) {}

  bool is_compact(const Instr& store) const {
    const ValueId index = store.operands[0], pred = kir::optional_operand(store, 2);
    const Instr* sum = made_.of(index);
    if (!pred || !is_scalar(sum, ScalarOp::add) || made_.is_of_elements(sum->operands[0]))
      return false;
    const Instr* count = made_.of(sum->operands[1]);
    const bool counts = count && count->kind == InstrKind::running_sum && count->exclusive &&
                        count->results[0] == sum->operands[1];
    if (!counts) return false;
    const ValueId truth = count->operands[0];
    return kernel_.values[truth.index()].type == kir::ComputeType::Bool &&
           (pred == truth || is_cut(pred, truth, index));
  }

 private:
  // Is the condition the truth combined with "the place is below a limit"?
  bool is_cut(ValueId pred, ValueId truth, ValueId index) const {
    const Instr* both = made_.of(pred);
    if (!is_scalar(both, ScalarOp::bit_and)) return false;
    const auto is_below = [&](ValueId v) {
      const Instr* below = made_.of(v);
      return is_scalar(below, ScalarOp::lt) && below->operands[0] == index &&
             !made_.is_of_elements(below->operands[1]);
    };
    return (both->operands[0] == truth && is_below(both->operands[1])) ||
           (both->operands[1] == truth && is_below(both->operands[0]));
  }

  const kir::Kernel& kernel_;
  Definitions made_;
};

}  // namespace

void mark_compact(kir::KernelProgram& program) {
  for (kir::Kernel& kernel : program.kernels) {
    const CompactStores stores(kernel);
    for (kir::Section& section : kernel.sections) {
      if (section.kind != kir::SectionKind::Elements) continue;
      for (Instr& instr : section.instrs)
        instr.is_compact = instr.kind == InstrKind::store_at && stores.is_compact(instr);
    }
  }
}

}  // namespace cinch::codegen
