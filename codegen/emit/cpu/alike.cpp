// CpuKernelEmitter: what is the same for all elements of a row of a tile, like the norm of the
// bucket that they are in, is computed once for the row.
#include <algorithm>

#include "codegen/emit/cpu/kernel.h"

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

// A vector begins at a multiple of its lanes, in its tile and where tiles make up the domain: the
// places without their low bits are one.
bool CpuKernelEmitter::is_alike_in_vectors(ValueId value) const {
  constexpr std::uint64_t kMostLaneBits = 4;
  if (!is_element(value) || is_constant(value)) return true;
  const Instr* made = definitions_[value.index()];
  if (made == nullptr || !kir::is_integer(type(value))) return false;
  if (made->kind == kir::InstrKind::convert) {
    return kir::is_integer(type(made->operands[0])) && is_alike_in_vectors(made->operands[0]);
  }
  if (made->kind != kir::InstrKind::scalar) return false;
  if (made->scalar_op == ScalarOp::shr && is_constant(made->operands[1])) {
    const Instr* place = definitions_[made->operands[0].index()];
    const bool is_place =
        place != nullptr &&
        (place->kind == kir::InstrKind::column ||
         (place->kind == kir::InstrKind::element && kernel_.group_kind == kir::GroupKind::Tile));
    const std::uint64_t bits = definitions_[made->operands[1].index()]->bits;
    if (is_place && bits >= kMostLaneBits && bits < 32) return true;
  }
  return std::ranges::all_of(made->operands, [&](ValueId v) { return is_alike_in_vectors(v); });
}

}  // namespace cinch::codegen
