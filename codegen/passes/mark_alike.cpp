#include "codegen/passes/marks.h"

#include <algorithm>
#include <set>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/instr_info.h"
#include "codegen/passes/rewrites.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

class Alike {
 public:
  explicit Alike(kir::Kernel& kernel) : kernel_(kernel), made_(kernel) {
    for (const kir::Section& section : kernel.sections) {
      for (const Instr& instr : section.instrs) {
        const bool is_load = kir::is_load(instr.kind);
        if (!is_load) changed_.insert(instr.buffers.begin(), instr.buffers.end());
      }
    }
  }

  void mark() {
    for (kir::Section& section : kernel_.sections) {
      if (section.kind != kir::SectionKind::Elements) continue;
      for (Instr& instr : section.instrs) {
        instr.is_alike = is_alike(instr);
        if (instr.is_alike) alike_.insert(instr.results[0].index());
      }
    }
  }

 private:
  // An integer constant, perhaps in another type; 0 if the value is not one.
  std::uint64_t whole_constant(ValueId value) const {
    const Instr* made = made_.of(value);
    const bool is_converted =
        made && made->kind == InstrKind::convert && is_int(made->dtype) && is_int(made->from_dtype);
    if (is_converted) made = made_.of(made->operands[0]);
    return made && made->kind == InstrKind::constant &&
                   kir::is_integer(kernel_.values[made->results[0].index()].type)
               ? made->bits
               : 0;
  }

  // Does it divide the element's number by a multiple of a row's length? Rows begin at multiples of
  // it.
  bool divides_rows(const Instr& instr) const {
    if (instr.kind != InstrKind::scalar || instr.operands.size() != 2) return false;
    const Instr* element = made_.of(instr.operands[0]);
    if (!element || element->kind != InstrKind::element) return false;
    const std::uint64_t by = whole_constant(instr.operands[1]);
    if (instr.scalar_op == ScalarOp::div) return by != 0 && by % kir::kRowElems == 0;
    constexpr std::uint64_t kMostShift = 32;
    return instr.scalar_op == ScalarOp::shr && by < kMostShift &&
           (1ull << by) % kir::kRowElems == 0;
  }

  bool is_alike(const Instr& instr) const {
    if (divides_rows(instr)) return true;
    const bool is_load = instr.kind == InstrKind::load_at && !changed_.contains(instr.buffers[0]);
    if (!is_load && !kir::is_computed(instr.kind)) return false;
    bool depends = false;
    for (const ValueId operand : instr.operands) {
      const bool is_shared = !operand || !made_.is_of_elements(operand) ||
                             (made_.of(operand) && made_.of(operand)->kind == InstrKind::constant);
      if (is_shared) continue;
      if (!alike_.contains(operand.index())) return false;
      depends = true;
    }
    return depends;
  }

  kir::Kernel& kernel_;
  Definitions made_;
  std::set<rt::BufferIndex> changed_;
  std::set<std::uint32_t> alike_;
};

}  // namespace

void mark_alike(kir::KernelProgram& program) {
  for (kir::Kernel& kernel : program.kernels) {
    if (kernel.group_kind == kir::GroupKind::Tile) Alike(kernel).mark();
  }
}

}  // namespace cinch::codegen
