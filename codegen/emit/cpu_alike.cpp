// CpuKernelEmitter: what is the same for all elements of a row of a tile, like the norm of the
// bucket that they are in, is computed once for the row.
#include <algorithm>

#include "codegen/emit/cpu_kernel.h"
#include "codegen/kir/builder.h"
#include "codegen/kir/instr_info.h"

namespace cinch::codegen {

using kir::InstrKind;

namespace {}  // namespace

// An integer constant, perhaps in another type; 0 where the value is none.
std::uint64_t CpuKernelEmitter::whole_constant(ValueId value) const {
  const Instr* made = definitions_[value.index()];
  const bool is_converted =
      made && made->kind == InstrKind::convert && is_int(made->dtype) && is_int(made->from_dtype);
  if (is_converted) made = definitions_[made->operands[0].index()];
  return made && made->kind == InstrKind::constant && kir::is_integer(type(made->results[0]))
             ? made->bits
             : 0;
}

// The element's number by a multiple of a row's length: rows begin at multiples of it.
bool CpuKernelEmitter::divides_rows(const Instr& instr) const {
  if (instr.kind != InstrKind::scalar || instr.operands.size() != 2) return false;
  const Instr* element = definitions_[instr.operands[0].index()];
  if (!element || element->kind != InstrKind::element) return false;
  const std::uint64_t by = whole_constant(instr.operands[1]);
  if (instr.scalar_op == ScalarOp::div) return by != 0 && by % kRowElems == 0;
  return instr.scalar_op == ScalarOp::shr && by < 32 && (1ull << by) % kRowElems == 0;
}

bool CpuKernelEmitter::is_alike(const Instr& instr, const std::set<std::uint32_t>& known) const {
  if (divides_rows(instr)) return true;
  const bool is_load = instr.kind == InstrKind::load_at && is_only_read(instr.buffers[0]);
  if (!is_load && !kir::is_computed(instr.kind)) return false;
  bool depends = false;
  for (const ValueId operand : instr.operands) {
    if (!operand || !is_element(operand) || is_constant(operand)) continue;
    if (!known.contains(operand.index())) return false;
    depends = true;
  }
  return depends && !hits_.contains(instr.results[0].index());
}

std::set<std::size_t> CpuKernelEmitter::alike_in_rows(const std::vector<Instr>& instrs) const {
  std::set<std::size_t> alike;
  if (kernel_.group_kind != kir::GroupKind::Tile || options_.count_accesses) return alike;
  std::set<std::uint32_t> known;
  for (std::size_t i = 0; i < instrs.size(); ++i) {
    if (!is_alike(instrs[i], known)) continue;
    alike.insert(i);
    known.insert(instrs[i].results[0].index());
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
