// CpuKernelEmitter: the loop over groups, its phases and sections.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpu/kernel.h"
#include "codegen/kir/builder.h"
#include "codegen/kir/instr_info.h"

namespace cinch::codegen {

using kir::InstrKind;
using kir::SectionKind;

void CpuKernelEmitter::emit_groups() {
  if (kernel_.sections.size() < 2) return;
  level_ = Level::Group;
  if (phases_.size() == 1) {
    emit_plain_groups();
  } else {
    emit_chunked_groups();
  }
}

void CpuKernelEmitter::emit_plain_groups() {
  line("for (u64 group = group_begin; group < group_stop; ++group) {");
  emit_group_values();
  for (const Piece& piece : phases_[0].pieces) emit_piece(piece);
  line("}");
}

// A chunk of groups goes through a phase together, so that one look-back serves them all.
void CpuKernelEmitter::emit_chunked_groups() {
  const bool is_row = kernel_.group_kind == kir::GroupKind::Row;
  line(fmt::format("const u32 max_chunk = chunk_groups({});", is_row ? "len" : "kTile"));
  for (std::uint32_t v : crossing_) {
    const ValueId value{v};
    line(fmt::format("{} kept_{}[kMaxChunk];", c_type(type(value)), name(value)));
  }
  for (const auto& [truth, section] : hits_) {
    line(fmt::format("TileHits hits_{}[kMaxChunk];", section));
  }
  line("for (u64 chunk = group_begin; chunk < group_stop; chunk += max_chunk) {");
  line("const u32 chunk_len = u32(least(group_stop - chunk, u64(max_chunk)));");
  for (std::size_t p = 0; p < phases_.size(); ++p) emit_phase(p);
  line("}");
}

void CpuKernelEmitter::emit_phase(std::size_t p) {
  const Phase& phase = phases_[p];
  line("for (u32 slot = 0; slot < chunk_len; ++slot) {");
  line("const u64 group = chunk + slot;");
  emit_group_values();
  for (std::uint32_t v : crossing_) {
    if (p > def_phase_[v]) define(ValueId{v}, fmt::format("kept_{}[slot]", name(ValueId{v})));
  }
  for (const Piece& piece : phase.pieces) emit_piece(piece);
  for (std::uint32_t v : crossing_) {
    const bool is_here = def_phase_[v] == p && definitions_[v]->kind != InstrKind::look_back;
    if (is_here) line(fmt::format("kept_{0}[slot] = {0};", name(ValueId{v})));
  }
  line("}");
  if (phase.look_back) emit_look_back(*phase.look_back);
}

void CpuKernelEmitter::emit_look_back(const Instr& instr) {
  const ValueId total = instr.operands[0], result = instr.results[0];
  const rt::BufferIndex state = instr.buffers[0];
  const std::string type_name = c_type(type(result));
  const std::string total_text = value_levels_[total.index()] == Level::Group
                                     ? fmt::format("kept_{}[slot]", name(total))
                                     : uniform(total);
  const std::string each = "for (u32 slot = 0; slot < chunk_len; ++slot) ";
  line("{");
  line(fmt::format("{} part = 0;", type_name));
  line(each + fmt::format("part = part + {};", total_text));
  line(fmt::format("{} sum = sum_before(b{}, chunk, chunk_len, part);", type_name, state));
  line(each + "{");
  line(fmt::format("kept_{}[slot] = sum;", name(result)));
  line(fmt::format("sum = sum + {};", total_text));
  line("}");
  line("}");
}

void CpuKernelEmitter::emit_group_values() {
  if (kernel_.group_kind == kir::GroupKind::Tile) {
    line("const u32 len = u32(least(extent - i64(group) * 1024, i64(kTile)));");
  }
}

void CpuKernelEmitter::emit_piece(const Piece& piece) {
  section_ = piece.section;
  const kir::Section& section = kernel_.sections[piece.section];
  if (section.kind == SectionKind::Elements) {
    emit_elements(piece);
    return;
  }
  level_ = Level::Group;
  for (instr_ = piece.begin; instr_ < piece.end; ++instr_) emit_instr(section.instrs[instr_]);
}

// Reductions and sums live over the section, stages over a tile.
void CpuKernelEmitter::emit_elements(const Piece& piece) {
  const auto& instrs = kernel_.sections[piece.section].instrs;
  if (instrs.empty()) return;
  level_ = Level::Group;
  for (const Instr& instr : instrs) declare_results(instr);
  line("{");
  for (const Instr& instr : instrs) open_section(instr);
  if (has_many_tiles()) {
    line("for (u32 tile = 0; tile < len; tile += kTile) {");
    line("const u32 tile_len = least(len - tile, kTile);");
  } else {
    line("{");
    line("constexpr u32 tile = 0;");
    line("const u32 tile_len = len;");
  }
  for (instr_ = 0; instr_ < instrs.size(); ++instr_) open_tile(instrs[instr_]);
  emit_vectors(instrs);
  for (instr_ = 0; instr_ < instrs.size(); ++instr_) close_tile(instrs[instr_]);
  line("}");
  for (const Instr& instr : instrs) close_section(instr);
  line("}");
}

// When every lane of every vector of a tile takes part, no bound of its elements is NaN, and packed
// elements begin at a byte.
std::string CpuKernelEmitter::is_whole_text(const std::vector<Instr>& instrs) const {
  std::string text =
      kernel_.group_kind == kir::GroupKind::Tile ? "tile_len == kTile" : "tile_len % W == 0";
  for (const Instr& instr : instrs) {
    if (const ValueId limit = linear_limit(instr)) {
      text += fmt::format(" && i64({}) >= i64(tile + tile_len)", uniform(limit));
    }
  }
  for (const ValueId bound : uniform_bounds(instrs)) {
    text += fmt::format(" && {0} == {0}", uniform(bound));
  }
  for (const Instr& instr : instrs) {
    const ValueId base = optional_operand(instr, 0);
    if (!is_staged_load(instr) || !base) continue;
    text += fmt::format(" && u64({}) * {} % 8 == 0", base_text(base, "tile"),
                        storage(instr.buffers[0]).bits);
  }
  return text;
}

// The loop over a tile's vectors, as a rule twice: where all lanes of all vectors take part nothing
// is masked.
void CpuKernelEmitter::emit_vectors(const std::vector<Instr>& instrs) {
  const bool is_tile = kernel_.group_kind == kir::GroupKind::Tile;
  line("const auto elements = [&](auto whole) __attribute__((always_inline)) {");
  line(fmt::format("const u32 end = {};", is_tile ? "whole.value ? kTile : tile_len" : "tile_len"));
  for (instr_ = 0; instr_ < instrs.size(); ++instr_) fill_stage(instrs[instr_]);
  const bool is_again = rounds_again(instrs);
  if (is_again) line("Truth rare = Truth(0);");
  const bool is_placed = is_placed_by_hits(section_);
  alike_ = is_placed ? std::set<std::size_t>() : alike_in_rows(instrs);
  const auto joins_rows = [&](const Instr& instr) { return same_in_rows(instr) != 0; };
  const bool has_rows =
      !alike_.empty() || (!is_placed && std::any_of(instrs.begin(), instrs.end(), joins_rows));
  goes_by_columns_ = !has_rows && !is_placed && can_go_by_columns(instrs);
  open_loops(instrs, has_rows, is_placed);
  emit_lanes_of_vector();
  level_ = Level::Element;
  emit_vector(instrs);
  level_ = Level::Group;
  line("}");
  if (has_rows) {
    for (const Instr& instr : instrs) end_row(instr);
    line("}");
  }
  if (goes_by_columns_) {
    each_column(instrs, "if constexpr (whole.value) columns_{0}.column[first / W] = column_{0};");
    line("}");
  }
  if (is_again) line("return any_lane(rare);");
  line("};");
  if (is_again) {
    line(fmt::format("if (!({}) || elements(Known<true>{{}})) elements(Known<false>{{}});",
                     is_whole_text(instrs)));
    return;
  }
  const Loops loops = loops_of(instrs);
  if (loops == Loops::Both) {
    line(fmt::format("if ({}) elements(Known<true>{{}});", is_whole_text(instrs)));
    line("else elements(Known<false>{});");
  } else {
    line(fmt::format("elements(Known<{}>{{}});", loops == Loops::Whole));
  }
}

// The heads of the loop or loops over a tile's vectors.
void CpuKernelEmitter::open_loops(const std::vector<Instr>& instrs, bool has_rows, bool is_placed) {
  if (has_rows) line(fmt::format("for (u32 row = 0; row < end; row += {}u) {{", kRowElems));
  begin_row(instrs);
  if (goes_by_columns_) {
    line("for (u32 first = 0; first < (whole.value ? kColumns : u32(W)); first += W) {");
    each_column(instrs, "auto column_{0} = columns_{0}.column[first / W];");
    for (const Instr& instr : instrs) fetch_ahead(instr);
  }
  if (is_placed) {
    return line(
        fmt::format("for (u32 i = hits_{0}[slot].next(0, end); i < end; "
                    "i = hits_{0}[slot].next(i + W, end)) {{",
                    section_));
  }
  line(fmt::format("#pragma clang loop unroll_count(whole.value ? {} : 1)", unrolled(instrs)));
  line(has_rows ? fmt::format("for (u32 i = row; i < least(row + {}u, end); i += W) {{", kRowElems)
       : goes_by_columns_ ? "for (u32 i = first; i < end; i += whole.value ? kColumns : u32(W)) {"
                          : "for (u32 i = 0; i < end; i += W) {");
}

void CpuKernelEmitter::emit_lanes_of_vector() {
  line("const u32 active = whole.value ? u32(W) : least(tile_len - i, u32(W));");
  line("const Truth live = whole.value ? all_lanes() : first_lanes(active);");
  line("const u32 j = tile + i;");
}

// Where a section does no more than put the lanes that hold to running places, a vector in which no
// lane holds is not looked at if an earlier phase knows it, and else ends early: what the lanes
// hold by comes first, then the rest.
void CpuKernelEmitter::emit_vector(const std::vector<Instr>& instrs) {
  const std::set<std::size_t> first =
      is_placed_by_hits(section_) ? std::set<std::size_t>() : needed_to_place(instrs);
  const auto emit_those = [&](bool are_first) {
    for (instr_ = 0; instr_ < instrs.size(); ++instr_) {
      if (first.contains(instr_) != are_first || alike_.contains(instr_)) continue;
      emit_instr(instrs[instr_]);
      note_hits(instrs[instr_]);
    }
  };
  if (!first.empty()) {
    emit_those(true);
    line(fmt::format("if (!any_lane({})) continue;", acting(placed_truth(instrs))));
  }
  emit_those(false);
}

void CpuKernelEmitter::note_hits(const Instr& instr) {
  for (const ValueId result : instr.results) {
    const auto hits = hits_.find(result.index());
    if (hits == hits_.end()) continue;
    line(fmt::format("hits_{}[slot].note(i, {});", hits->second, acting(result)));
  }
}

bool CpuKernelEmitter::is_placed_by_hits(std::size_t section) const {
  return std::any_of(hits_.begin(), hits_.end(),
                     [&](const auto& hits) { return hits.second == section; });
}

}  // namespace cinch::codegen
