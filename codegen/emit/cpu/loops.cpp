// In which order the loop over a tile's vectors goes, how often it is printed and unrolled:
// compiling takes as long as there is code, and code that saves nothing is not worth it.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpu/kernel.h"
#include "codegen/kir/instr_info.h"

namespace cinch::codegen {

using kir::InstrKind;

namespace {

// Of longer bodies, counting the loop and jumping back are a small part, and the processor looks
// far enough ahead without two in a row.
constexpr std::size_t kUnrolledInstrs = 16;

}  // namespace

// Are all tiles there are whole ones, by a size that is known now?
bool CpuKernelEmitter::has_whole_tiles_only() const {
  const HostExprPool& pool = program_.info.exprs;
  return kernel_.group_kind == kir::GroupKind::Tile && !kernel_.extent_value.is_valid() &&
         pool.is_const(kernel_.extent) &&
         pool.const_value(kernel_.extent).as_int() % kir::kTileElems == 0;
}

CpuKernelEmitter::Loops CpuKernelEmitter::loops_of(const std::vector<Instr>& instrs) const {
  // Few vectors are left where an earlier phase knows which ones count: once is enough.
  if (is_placed_by_hits(section_)) return Loops::Masked;
  if (rounds_again(instrs)) return Loops::Both;
  const bool asks_for_tiles_alone =
      uniform_bounds(instrs).empty() && std::ranges::none_of(instrs, [&](const Instr& instr) {
        const bool has_base = is_staged_load(instr) && optional_operand(instr, 0).is_valid();
        return linear_limit(instr).is_valid() || has_base;
      });
  return has_whole_tiles_only() && asks_for_tiles_alone ? Loops::Whole : Loops::Both;
}

int CpuKernelEmitter::unrolled(const std::vector<Instr>& instrs) const {
  return instrs.size() <= kUnrolledInstrs ? 2 : 1;
}

// May a whole tile's vectors be taken column by column, with what each column has taken in in
// registers? Worth it for ordered reductions, and possible where nothing depends on what came
// before.
bool CpuKernelEmitter::can_go_by_columns(const std::vector<Instr>& instrs) const {
  if (kernel_.group_kind != kir::GroupKind::Tile) return false;
  bool has_columns = false;
  for (const Instr& instr : instrs) {
    switch (instr.kind) {
      case InstrKind::reduce:
        if (!kernel_.combiners[instr.combiner].op) return false;
        has_columns |= !is_any_order(instr);
        break;
      case InstrKind::load_linear:
      case InstrKind::store_linear:
      case InstrKind::local_store:
      case InstrKind::local_load:
      case InstrKind::flag_nonfinite:
      case InstrKind::fail_if:
        break;
      default:
        if (!kir::is_computed(instr.kind)) return false;
    }
  }
  return has_columns;
}

void CpuKernelEmitter::each_column(const std::vector<Instr>& instrs, std::string_view pattern) {
  for (const Instr& instr : instrs) {
    if (instr.kind != InstrKind::reduce || is_any_order(instr)) continue;
    for (const ValueId result : instr.results) {
      line(fmt::format(fmt::runtime(pattern), name(result)));
    }
  }
}

}  // namespace cinch::codegen
