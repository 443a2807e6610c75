// CpuKernelEmitter: the loop over groups, its phases and sections.
#include <fmt/format.h>

#include "codegen/emit/cpu/kernel/kernel.h"

namespace cinch::codegen {

using kir::InstrKind;
using kir::SectionKind;

void CpuKernelEmitter::emit_groups() {
  if (kernel().sections.size() < 2) return;
  cx().level = Level::Group;
  if (cx().phases.all().size() == 1) {
    emit_plain_groups();
  } else {
    emit_chunked_groups();
  }
}

void CpuKernelEmitter::emit_plain_groups() {
  line("for (u64 group = group_begin; group < group_stop; ++group) {");
  emit_group_values();
  for (const CpuPhases::Piece& piece : cx().phases.all()[0].pieces) emit_piece(piece);
  line("}");
}

// A chunk of groups goes through a phase together. So one look-back serves all of them, or one
// vector holds the row values of several rows.
void CpuKernelEmitter::emit_chunked_groups() {
  const bool is_row = kernel().group_kind == kir::GroupKind::Row;
  line(cx().phases.takes_rows_together()
           ? std::string("const u32 max_chunk = least(kMaxChunk, kTile / len);")
           : fmt::format("const u32 max_chunk = chunk_groups({});", is_row ? "len" : "kTile"));
  for (std::uint32_t v : cx().phases.crossing()) {
    const ValueId value{v};
    line(fmt::format("{} kept_{}[kMaxChunk];", c_type(type(value)), name(value)));
  }
  for (const auto& [truth, section] : cx().compaction.hits()) {
    line(fmt::format("TileHits hits_{}[kMaxChunk];", section));
  }
  line("for (u64 chunk = group_begin; chunk < group_stop; chunk += max_chunk) {");
  line("const u32 chunk_len = u32(least(group_stop - chunk, u64(max_chunk)));");
  for (std::size_t p = 0; p < cx().phases.all().size(); ++p) emit_phase(p);
  line("}");
}

void CpuKernelEmitter::emit_phase(std::size_t p) {
  const CpuPhases::Phase& phase = cx().phases.all()[p];
  if (phase.is_for_rows) return emit_for_rows(p);
  const bool packs_rows = cx().phases.takes_rows_together();
  if (packs_rows) {
    line("{");
    each_store(phase, &CpuMemory::open_rows);
  }
  line("for (u32 slot = 0; slot < chunk_len; ++slot) {");
  line("const u64 group = chunk + slot;");
  emit_group_values();
  for (std::uint32_t v : cx().phases.crossing()) {
    if (p > cx().phases.phase_of(ValueId{v}))
      define(ValueId{v}, fmt::format("kept_{}[slot]", name(ValueId{v})));
  }
  for (const CpuPhases::Piece& piece : phase.pieces) emit_piece(piece);
  for (std::uint32_t v : cx().phases.crossing()) {
    const bool is_here = cx().phases.phase_of(ValueId{v}) == p &&
                         facts().definition(ValueId{v})->kind != InstrKind::look_back;
    if (is_here) line(fmt::format("kept_{0}[slot] = {0};", name(ValueId{v})));
  }
  line("}");
  if (packs_rows) {
    each_store(phase, &CpuMemory::close_rows);
    line("}");
  }
  if (phase.look_back) emit_look_back(*phase.look_back);
}

void CpuKernelEmitter::each_store(const CpuPhases::Phase& phase,
                                  void (CpuMemory::*emit)(const Instr&)) {
  for (const CpuPhases::Piece& piece : phase.pieces) {
    cx().section = piece.section;
    const auto& instrs = kernel().sections[piece.section].instrs;
    for (cx().instr = piece.begin; cx().instr < piece.end; ++cx().instr) {
      if (instrs[cx().instr].kind == InstrKind::store_linear)
        (instrs_.memory().*emit)(instrs[cx().instr]);
    }
  }
}

void CpuKernelEmitter::emit_look_back(const Instr& instr) {
  const ValueId total = instr.operands[0], result = instr.results[0];
  const rt::BufferIndex state = instr.buffers[0];
  const std::string type_name = c_type(type(result));
  const std::string total_text = facts().level(total) == Level::Group
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
  if (kernel().group_kind == kir::GroupKind::Tile) {
    line("const u32 len = u32(least(extent - i64(group) * 1024, i64(kTile)));");
  }
}

void CpuKernelEmitter::emit_piece(const CpuPhases::Piece& piece) {
  cx().section = piece.section;
  const kir::Section& section = kernel().sections[piece.section];
  if (section.kind == SectionKind::Elements) {
    return elements_.emit(section.instrs);
  }
  cx().level = Level::Group;
  for (cx().instr = piece.begin; cx().instr < piece.end; ++cx().instr)
    instrs_.emit(section.instrs[cx().instr]);
}

}  // namespace cinch::codegen
