// CpuKernelEmitter: what is the same for all elements of a row of a tile, like the norm of the
// bucket that they are in, is computed once for the row.
#include <algorithm>

#include "codegen/emit/cpu_kernel.h"

namespace cinch::codegen {

using kir::InstrKind;

// Not what follows a truth that an earlier phase knows of: its vectors are not looked at in order.
std::set<std::size_t> CpuKernelEmitter::alike_in_rows(const std::vector<Instr>& instrs) const {
  std::set<std::size_t> alike;
  if (options_.count_accesses) return alike;
  std::set<std::uint32_t> left_out;
  for (std::size_t i = 0; i < instrs.size(); ++i) {
    if (!instrs[i].is_alike) continue;
    const bool follows = std::ranges::any_of(instrs[i].operands, [&](ValueId operand) {
      return operand && left_out.contains(operand.index());
    });
    if (follows || hits_.contains(instrs[i].results[0].index())) {
      left_out.insert(instrs[i].results[0].index());
    } else {
      alike.insert(i);
    }
  }
  return alike;
}

// As the row's first vector has it: where that is not whole, no other one follows.
void CpuKernelEmitter::begin_row(const std::vector<Instr>& instrs) {
  if (alike_.empty()) return;
  line("const u32 i = row;");
  emit_lanes_of_vector();
  level_ = Level::Element;
  for (instr_ = 0; instr_ < instrs.size(); ++instr_) {
    const bool is_shown = alike_.contains(instr_) || instrs[instr_].kind == InstrKind::element;
    if (is_shown) emit_instr(instrs[instr_]);
  }
  level_ = Level::Group;
}

}  // namespace cinch::codegen
