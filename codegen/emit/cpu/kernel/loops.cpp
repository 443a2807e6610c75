// CpuElements: the order of the loop over a tile's vectors, how often it is printed and unrolled,
// and what is computed once for a row. Compile time grows with the code, so code that saves nothing
// is not printed.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpu/kernel/elements.h"
#include "codegen/kir/compute_type.h"
#include "codegen/kir/instr_info.h"

namespace cinch::codegen {

using kir::InstrKind;

namespace {

// In longer bodies, the loop's counter and jump are a small part, and the processor looks far
// enough ahead without unrolling.
constexpr std::size_t kUnrolledInstrs = 16;

}  // namespace

CpuElements::Loops CpuElements::loops_of(const std::vector<Instr>& instrs) const {
  // If an earlier phase knows which vectors count, few are left, so one loop is enough.
  if (cx().compaction.is_placed_by_hits(cx().section)) return Loops::Masked;
  if (facts().rounds_again(instrs)) return Loops::Both;
  const bool asks_for_tiles_alone =
      facts().uniform_bounds(instrs).empty() &&
      std::ranges::none_of(instrs, [&](const Instr& instr) {
        const bool has_base = facts().is_staged_load(instr) && base_of(instr).is_valid();
        return limit_of(instr).is_valid() || has_base;
      });
  if (facts().has_whole_tiles_only() && asks_for_tiles_alone) return Loops::Whole;
  return facts().is_quick() ? Loops::Masked : Loops::Both;
}

int CpuElements::unrolled(const std::vector<Instr>& instrs) const {
  return instrs.size() <= kUnrolledInstrs ? 2 : 1;
}

// Can a whole tile's vectors be taken column by column, with the columns' partial results in
// registers? This pays off for ordered reductions, and is possible if nothing depends on earlier
// elements.
bool CpuElements::can_go_by_columns(const std::vector<Instr>& instrs) const {
  if (!facts().has_whole_columns()) return false;
  bool has_columns = false;
  for (const Instr& instr : instrs) {
    switch (instr.kind) {
      case InstrKind::reduce:
        if (!kernel().combiners[instr.combiner].op) return false;
        has_columns |= !facts().is_any_order(instr);
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

void CpuElements::each_column(const std::vector<Instr>& instrs, std::string_view pattern) {
  for (const Instr& instr : instrs) {
    if (instr.kind != InstrKind::reduce || facts().is_any_order(instr)) continue;
    for (const ValueId result : instr.results) {
      line(fmt::format(fmt::runtime(pattern), name(result)));
    }
  }
}

// Leaves out what depends on a truth value that an earlier phase knows, because vectors are then
// skipped.
std::set<std::size_t> CpuElements::alike_in_rows(const std::vector<Instr>& instrs) const {
  std::set<std::size_t> alike;
  if (facts().counts_accesses()) return alike;
  std::set<std::uint32_t> left_out;
  for (std::size_t i = 0; i < instrs.size(); ++i) {
    if (!instrs[i].is_alike) continue;
    const bool follows = std::ranges::any_of(instrs[i].operands, [&](ValueId operand) {
      return operand && left_out.contains(operand.index());
    });
    if (follows || cx().compaction.hits().contains(instrs[i].results[0].index())) {
      left_out.insert(instrs[i].results[0].index());
    } else {
      alike.insert(i);
    }
  }
  return alike;
}

// Takes the values of the row's first vector. If that vector is not whole, it is the last one.
void CpuElements::begin_row(const std::vector<Instr>& instrs) {
  if (alike_.empty()) return;
  line("const u32 i = row;");
  emit_lanes_of_vector();
  cx().level = Level::Element;
  for (cx().instr = 0; cx().instr < instrs.size(); ++cx().instr) {
    const bool is_shown =
        alike_.contains(cx().instr) || instrs[cx().instr].kind == InstrKind::element;
    if (is_shown) instrs_.emit(instrs[cx().instr]);
  }
  cx().level = Level::Group;
}

}  // namespace cinch::codegen
