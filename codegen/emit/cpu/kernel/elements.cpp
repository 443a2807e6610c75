// The frame of an element section, and its loops.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpu/kernel/elements.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
// True if every lane of every vector of a tile takes part, no bound of its elements is NaN, and
// packed elements begin at a byte.
std::string CpuElements::is_whole_text(const std::vector<Instr>& instrs) const {
  std::string text =
      kernel().group_kind == kir::GroupKind::Tile ? "tile_len == kTile" : "tile_len % W == 0";
  for (const Instr& instr : instrs) {
    if (const ValueId limit = limit_of(instr)) {
      text += fmt::format(" && i64({}) >= i64(tile + tile_len)", uniform(limit));
    }
  }
  for (const ValueId bound : facts().uniform_bounds(instrs)) {
    text += fmt::format(" && {0} == {0}", uniform(bound));
  }
  for (const Instr& instr : instrs) {
    const ValueId base = base_of(instr);
    if (!facts().is_staged_load(instr) || !base) continue;
    text += fmt::format(" && u64({}) * {} % 8 == 0", base_text(base, "tile"),
                        facts().storage(instr.buffers[0]).bits);
  }
  return text;
}

// The heads of the loops over a tile's vectors.
void CpuElements::open_loops(const std::vector<Instr>& instrs, bool has_rows, bool is_placed) {
  if (has_rows) line("for (u32 row = 0; row < end; row += {}u) {{", kir::kRowElems);
  begin_row(instrs);
  if (cx().goes_by_columns) {
    line("for (u32 first = 0; first < (whole.value ? kColumns : u32(W)); first += W) {");
    each_column(instrs, "auto column_{0} = columns_{0}.column[first / W];");
    for (const Instr& instr : instrs) memory_.fetch_ahead(instr);
  }
  if (is_placed) {
    return line(
        "for (u32 i = hits_{0}[slot].next(0, end); i < end; "
        "i = hits_{0}[slot].next(i + W, end)) {{",
        cx().section);
  }
  // In longer bodies, the loop's counter and jump are a small part, and the processor looks far
  // enough ahead without unrolling.
  constexpr std::size_t kUnrolledInstrs = 16;
  line("#pragma clang loop unroll_count(whole.value ? {} : 1)",
       instrs.size() <= kUnrolledInstrs ? 2 : 1);
  line(has_rows
           ? fmt::format("for (u32 i = row; i < least(row + {}u, end); i += W) {{", kir::kRowElems)
       : cx().goes_by_columns
           ? "for (u32 i = first; i < end; i += whole.value ? kColumns : u32(W)) {"
           : "for (u32 i = 0; i < end; i += W) {");
}

void CpuElements::emit_lanes_of_vector() {
  line("const u32 active = whole.value ? u32(W) : least(tile_len - i, u32(W));");
  line("const Truth live = whole.value ? all_lanes() : first_lanes(active);");
  line("const u32 j = tile + i;");
}

// A section may only store selected lanes at running places. If an earlier phase knows the selected
// lanes, the section skips vectors without them, and does not compute the selection again. If not,
// it computes the selection first and leaves such a vector early.
void CpuElements::emit_vector(const std::vector<Instr>& instrs) {
  const bool is_placed = cx().compaction.is_placed_by_hits(cx().section);
  const std::set<std::size_t> first =
      is_placed ? std::set<std::size_t>() : cx().compaction.needed_to_place(instrs);
  std::set<std::size_t> known;
  if (is_placed && !facts().counts_accesses()) {
    known = cx().compaction.known_by_hits(instrs);
    define(cx().compaction.placed_truth(instrs),
           fmt::format("hits_{}[slot].noted(i)", cx().section));
  }
  const auto emit_those = [&](bool are_first) {
    for (cx().instr = 0; cx().instr < instrs.size(); ++cx().instr) {
      if (first.contains(cx().instr) != are_first || alike_.contains(cx().instr)) continue;
      if (known.contains(cx().instr)) continue;
      instrs_.emit(instrs[cx().instr]);
      for (const ValueId result : instrs[cx().instr].results) {
        const auto hits = cx().compaction.hits().find(result.index());
        if (hits == cx().compaction.hits().end()) continue;
        line("hits_{}[slot].note(i, {});", hits->second, acting(result));
      }
    }
  };
  if (!first.empty()) {
    emit_those(true);
    line("if (!any_lane({})) continue;", acting(cx().compaction.placed_truth(instrs)));
  }
  if (!loads_for_placed(instrs, first)) return emit_those(false);
  line("const Truth kept = {};", acting(cx().compaction.placed_truth(instrs)));
  line("{");
  line("const Truth live = kept;");
  emit_those(false);
  line("}");
}

// Do scattered loads only serve lanes that are placed? They are then done for these lanes alone.
bool CpuElements::loads_for_placed(const std::vector<Instr>& instrs,
                                   const std::set<std::size_t>& first) const {
  if (facts().counts_accesses() || !cx().compaction.placed_truth(instrs)) return false;
  for (std::size_t i = 0; i < instrs.size(); ++i) {
    if (instrs[i].kind == kir::InstrKind::load_at && !first.contains(i)) return true;
  }
  return false;
}

// The loop over a tile's vectors, usually printed twice. If all lanes of all vectors take part,
// nothing is masked.
void CpuElements::emit_vectors(const std::vector<Instr>& instrs) {
  const bool is_tile = kernel().group_kind == kir::GroupKind::Tile;
  line("const auto elements = [&](auto whole) __attribute__((always_inline)) {");
  line("const u32 end = {};", is_tile ? "whole.value ? kTile : tile_len" : "tile_len");
  for (cx().instr = 0; cx().instr < instrs.size(); ++cx().instr)
    memory_.fill_stage(instrs[cx().instr]);
  const bool is_again = facts().rounds_again(instrs);
  if (is_again) line("Truth rare = Truth(0);");
  const bool is_placed = cx().compaction.is_placed_by_hits(cx().section);
  alike_ = is_placed ? std::set<std::size_t>() : alike_in_rows(instrs);
  const auto joins_rows = [&](const Instr& instr) { return facts().same_in_rows(instr) != 0; };
  const bool has_rows =
      !alike_.empty() || (!is_placed && std::any_of(instrs.begin(), instrs.end(), joins_rows));
  cx().goes_by_columns = !has_rows && !is_placed && can_go_by_columns(instrs);
  open_loops(instrs, has_rows, is_placed);
  emit_lanes_of_vector();
  cx().level = Level::Element;
  emit_vector(instrs);
  cx().level = Level::Group;
  line("}");
  if (has_rows) {
    for (const Instr& instr : instrs) reductions_.end_row(instr);
    line("}");
  }
  if (cx().goes_by_columns) {
    each_column(instrs, "if constexpr (whole.value) columns_{0}.column[first / W] = column_{0};");
    line("}");
  }
  if (is_again) line("return any_lane(rare);");
  line("};");
  if (is_again) {
    line("if (!({}) || elements(Known<true>{{}})) elements(Known<false>{{}});",
         is_whole_text(instrs));
    return;
  }
  const Loops loops = loops_of(instrs);
  if (loops == Loops::Both) {
    line("if ({}) elements(Known<true>{{}});", is_whole_text(instrs));
    line("else elements(Known<false>{});");
  } else {
    line("elements(Known<{}>{{}});", loops == Loops::Whole);
  }
}

// Reductions and sums live as long as the section, stages as long as a tile.
void CpuElements::emit(const std::vector<Instr>& instrs) {
  if (instrs.empty()) return;
  cx().level = Level::Group;
  for (const Instr& instr : instrs) reductions_.declare_results(instr);
  line("{");
  for (const Instr& instr : instrs) reductions_.open_section(instr);
  if (facts().has_many_tiles()) {
    line("for (u32 tile = 0; tile < len; tile += kTile) {");
    line("const u32 tile_len = least(len - tile, kTile);");
  } else {
    line("{");
    line("constexpr u32 tile = 0;");
    line("const u32 tile_len = len;");
  }
  for (cx().instr = 0; cx().instr < instrs.size(); ++cx().instr)
    instrs_.open_tile(instrs[cx().instr]);
  emit_vectors(instrs);
  for (cx().instr = 0; cx().instr < instrs.size(); ++cx().instr)
    instrs_.close_tile(instrs[cx().instr]);
  line("}");
  for (const Instr& instr : instrs) reductions_.close_section(instr);
  line("}");
}

using kir::InstrKind;

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
  // Does a size that is known now make all tiles whole?
  const auto& pool = *facts().program().info.exprs;
  const bool has_whole_tiles_only =
      kernel().group_kind == kir::GroupKind::Tile && !kernel().extent_value.is_valid() &&
      pool.is_const(kernel().extent) &&
      pool.const_value(kernel().extent).as_int() % kir::kTileElems == 0;
  if (has_whole_tiles_only && asks_for_tiles_alone) return Loops::Whole;
  return facts().is_quick() ? Loops::Masked : Loops::Both;
}

// Can a whole tile's vectors be taken column by column, with the columns' partial results in
// registers? This pays off for ordered reductions, and is possible if nothing depends on earlier
// elements.
bool CpuElements::can_go_by_columns(const std::vector<Instr>& instrs) const {
  // Do tiles without masks consist of whole rows of columns? Ordered reductions join columns.
  const auto& pool = *facts().program().info.exprs;
  const auto length = kernel().group_len;
  const bool has_whole_columns =
      kernel().group_kind == kir::GroupKind::Tile ||
      (kernel().group_kind == kir::GroupKind::Row && pool.is_const(length) &&
       pool.const_value(length).as_int() % kir::kRowElems == 0);
  if (!has_whole_columns) return false;
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
      line(fmt::runtime(pattern), name(result));
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
