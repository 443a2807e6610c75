// The function's frame, and the loop over groups with its phases and sections.
#include <fmt/format.h>

#include "codegen/emit/cpu/kernel/beside.h"
#include "codegen/emit/cpu/kernel/elements.h"
#include "codegen/emit/cpu/kernel/kernel.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
using kir::InstrKind;
using kir::SectionKind;

namespace {

// Prints the function's frame.
class CpuKernelEmitter : public CpuPrinter {
 public:
  explicit CpuKernelEmitter(CpuContext& cx) : CpuPrinter(cx), instrs_(cx), elements_(cx, instrs_) {}

  std::string emit() {
    emit_head();
    cx().level = Level::Kernel;
    cx().section = 0;
    const auto& instrs = kernel().sections[0].instrs;
    for (cx().instr = 0; cx().instr < instrs.size(); ++cx().instr) instrs_.emit(instrs[cx().instr]);
    emit_extent();
    emit_task_state();
    if (kernel().sections.size() > 1) {
      cx().level = Level::Group;
      emit_groups();
    }
    emit_tail();
    return cx().out.take();
  }

 private:
  void emit_head() {
    line(R"(extern "C" __attribute__((visibility("default"))) void {}()", kernel().info.symbol);
    line("    const KernelArgs* args, u64 group_begin, u64 group_end) {");
    std::set<rt::BufferIndex> buffers;
    const auto note = [&](const std::vector<Instr>& instrs) {
      for (const Instr& instr : instrs) buffers.insert(instr.buffers.begin(), instr.buffers.end());
    };
    for (const kir::Section& section : kernel().sections) note(section.instrs);
    for (const kir::Combiner& combiner : kernel().combiners) note(combiner.body);
    for (rt::BufferIndex b : buffers) {
      line("u8* const b{} = (u8*)args->buffers[{}];", b, b);
    }
    if (facts().counts_accesses()) line("u64 bits_read = 0, bits_written = 0;");
  }

  // Prints the actual number of elements and groups.
  void emit_extent() {
    const bool counted = kernel().extent_value.is_valid();
    const std::string actual = counted ? uniform(kernel().extent_value) : std::string();
    switch (kernel().group_kind) {
      case kir::GroupKind::Tile:
        line("const i64 bound = {};", size_text(kernel().extent));
        line(counted ? fmt::format("const i64 extent = {0} < 0 ? 0 : least({0}, bound);", actual)
                     : std::string("const i64 extent = bound;"));
        line("const u64 group_stop = least(group_end, u64((extent + 1023) / 1024));");
        break;
      case kir::GroupKind::Row:
        line("const u32 len = u32({});", size_text(kernel().group_len));
        line(counted
                 ? fmt::format("const u64 group_stop = {0} < 0 ? 0 : least(group_end, u64({0}));",
                               actual)
                 : std::string("const u64 group_stop = group_end;"));
        break;
      case kir::GroupKind::Single:
        line("const u32 len = 1;");
        line("const u64 group_stop = group_end;");
        break;
    }
  }

  // Prints what a task keeps from group to group: combiners, streams, local arrays, flags,
  // histograms.
  void emit_task_state() {
    for (std::size_t s = 1; s < kernel().sections.size(); ++s) {
      for (const Instr& instr : kernel().sections[s].instrs) {
        const bool is_element = kernel().sections[s].kind == SectionKind::Elements;
        instrs_.prepare(instr);
        if (instr.kind == InstrKind::fail_if && is_element) failures_.insert(instr.index);
        if (instr.kind == InstrKind::hist_add) {
          const auto [known, is_new] = histograms_.emplace(instr.buffers[0], instr.bits);
          CINCH_CHECK(is_new || known->second == instr.bits,
                      "histograms of several sizes in one buffer");
        }
        if (instr.kind == InstrKind::add_at &&
            kir::adds_in_any_order(facts().program().buffers[instr.buffers[0]])) {
          cells_.insert(instr.buffers[0]);
        }
      }
    }
    if (uses(kernel(), InstrKind::flag_nonfinite)) line("Truth nonfinite = Truth(0);");
    for (std::uint32_t message : failures_) line("Truth failed_{} = Truth(0);", message);
    const char* group_elems = kernel().group_kind == kir::GroupKind::Tile ? "kTile" : "len";
    for (const auto& [buffer, bins] : histograms_) {
      line("Histogram<{}u> histogram_{};", bins, buffer);
      line("histogram_{0}.open(b{0}, (group_end - group_begin) * {1});", buffer, group_elems);
    }
    for (const rt::BufferIndex buffer : cells_) {
      line("Cells<u{0}> cells_{1} = {{b{1}}};", facts().program().buffers[buffer].dtype.bits,
           buffer);
    }
    for (std::size_t i = 0; i < kernel().locals.size(); ++i) {
      CINCH_CHECK(!facts().has_many_tiles(), "a local array in a kernel of long rows");
      const auto index = static_cast<std::uint32_t>(i);
      const std::string array =
          facts().is_kept_as_bits(index)
              ? "LocalBits"
              : fmt::format("LocalArray<{}>", c_type(kernel().locals[i].type));
      line("{} local_{}{};", array, i, cx().phases.is_kept(index) ? "[kMaxChunk]" : "");
    }
  }

  void emit_tail() {
    if (uses(kernel(), InstrKind::flag_nonfinite)) {
      line("if (lang::any(nonfinite)) raise_flag(args, {}u);", rt::kFlagNonFinite);
    }
    for (std::uint32_t message : failures_) {
      line("if (any_lane(failed_{0})) report_failure(args, {0}u);", message);
    }
    for (const auto& [buffer, bins] : histograms_) {
      line("histogram_{}.close();", buffer);
      // The bins count once, although several tasks add to them.
      if (facts().counts_accesses()) {
        line("if (group_begin == 0) bits_written += u64({}) * 32;", bins);
      }
    }
    for (const rt::BufferIndex buffer : cells_) line("cells_{}.close();", buffer);
    if (facts().counts_accesses()) line("add_counted(args, bits_read, bits_written);");
    line("}");
  }

  std::string size_text(HostExprId expr) const {
    return codegen::size_text(facts().program(), expr, "args->");
  }

  // Rows go beside one another, or one after the other. If their length is not known yet, both are
  // printed.
  void emit_groups() {
    const std::int64_t longest = longest_rows_beside(facts());
    const auto& pool = *facts().program().info.exprs;
    const HostExprId length = kernel().group_len;
    const bool has_choice = longest > 0 && !pool.is_const(length);
    if (has_choice) line("if (len <= {}u) {{", longest);
    if (longest > 0) {
      cx().out = emit_rows_beside(facts(), std::move(cx().out));
      if (!has_choice) return;
      line("} else {");
    }
    cx().phases.all().size() == 1 ? emit_plain_groups() : emit_chunked_groups();
    if (has_choice) line("}");
  }

  void emit_plain_groups() {
    line("for (u64 group = group_begin; group < group_stop; ++group) {");
    emit_group_values();
    for (const CpuPhases::Piece& piece : cx().phases.all()[0].pieces) emit_piece(piece);
    line("}");
  }

  // A chunk of groups goes through a phase together. So one look-back serves all of them, or one
  // vector holds the row values of several rows.
  void emit_chunked_groups() {
    const bool is_row = kernel().group_kind == kir::GroupKind::Row;
    line(cx().phases.takes_rows_together()
             ? std::string("const u32 max_chunk = least(kMaxChunk, kTile / len);")
             : fmt::format("const u32 max_chunk = chunk_groups({});", is_row ? "len" : "kTile"));
    for (std::uint32_t v : cx().phases.crossing()) {
      const ValueId value{v};
      line("{} kept_{}[kMaxChunk];", c_type(type(value)), name(value));
    }
    for (const auto& [truth, section] : cx().compaction.hits()) {
      line("TileHits hits_{}[kMaxChunk];", section);
    }
    line("for (u64 chunk = group_begin; chunk < group_stop; chunk += max_chunk) {");
    line("const u32 chunk_len = u32(least(group_stop - chunk, u64(max_chunk)));");
    for (std::size_t p = 0; p < cx().phases.all().size(); ++p) emit_phase(p);
    line("}");
  }

  void emit_phase(std::size_t p) {
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
      if (is_here) line("kept_{0}[slot] = {0};", name(ValueId{v}));
    }
    line("}");
    if (packs_rows) {
      each_store(phase, &CpuMemory::close_rows);
      line("}");
    }
    if (phase.look_back) emit_look_back(*phase.look_back);
  }

  void each_store(const CpuPhases::Phase& phase, void (CpuMemory::*emit)(const Instr&)) {
    for (const CpuPhases::Piece& piece : phase.pieces) {
      cx().section = piece.section;
      const auto& instrs = kernel().sections[piece.section].instrs;
      for (cx().instr = piece.begin; cx().instr < piece.end; ++cx().instr) {
        if (instrs[cx().instr].kind == InstrKind::store_linear)
          (instrs_.memory().*emit)(instrs[cx().instr]);
      }
    }
  }

  void emit_look_back(const Instr& instr) {
    const ValueId total = instr.operands[0], result = instr.results[0];
    const rt::BufferIndex state = instr.buffers[0];
    const std::string type_name = c_type(type(result));
    const std::string total_text = facts().level(total) == Level::Group
                                       ? fmt::format("kept_{}[slot]", name(total))
                                       : uniform(total);
    const std::string each = "for (u32 slot = 0; slot < chunk_len; ++slot) ";
    line("{");
    line("{} part = 0;", type_name);
    line(each + fmt::format("part = part + {};", total_text));
    line("{} sum = sum_before(b{}, chunk, chunk_len, part);", type_name, state);
    line(each + "{");
    line("kept_{}[slot] = sum;", name(result));
    line("sum = sum + {};", total_text);
    line("}");
    line("}");
  }

  void emit_group_values() {
    if (kernel().group_kind == kir::GroupKind::Tile) {
      line("const u32 len = u32(least(extent - i64(group) * 1024, i64(kTile)));");
    }
  }

  void emit_piece(const CpuPhases::Piece& piece) {
    cx().section = piece.section;
    const kir::Section& section = kernel().sections[piece.section];
    if (section.kind == SectionKind::Elements) {
      return elements_.emit(section.instrs);
    }
    cx().level = Level::Group;
    for (cx().instr = piece.begin; cx().instr < piece.end; ++cx().instr)
      instrs_.emit(section.instrs[cx().instr]);
  }

  void emit_for_rows(std::size_t p) {
    line("for (u32 slot = 0; slot < chunk_len; slot += W) {");
    line("const u32 active = least(chunk_len - slot, u32(W));");
    cx().level = Level::Rows;
    for (std::uint32_t v : cx().phases.crossing()) {
      const ValueId value{v};
      if (p > cx().phases.phase_of(value))
        define(value, "local_lanes(kept_{} + slot)", name(value));
    }
    for (const CpuPhases::Piece& piece : cx().phases.all()[p].pieces) {
      for (const Instr& instr : kernel().sections[piece.section].instrs) {
        if (instr.kind != InstrKind::store_at) {
          instrs_.emit(instr);
          continue;
        }
        const Storage s = facts().storage(instr.buffers[0]);
        line("store_lanes<{}>(b{}, i64(chunk + slot), active, {});", s.element, instr.buffers[0],
             to_storage(s, lanes(instr.operands[1])));
      }
    }
    for (std::uint32_t v : cx().phases.crossing()) {
      const ValueId value{v};
      if (p == cx().phases.phase_of(value))
        line("set_local_lanes(kept_{0} + slot, {0});", name(value));
    }
    cx().level = Level::Group;
    line("}");
  }

  CpuInstrs instrs_;
  CpuElements elements_;
  std::set<std::uint32_t> failures_;                     // messages of element-level fail_if
  std::map<rt::BufferIndex, std::uint64_t> histograms_;  // bins of each hist_add's buffer
  std::set<rt::BufferIndex> cells_;                      // of integers that are added in any order
};

}  // namespace

std::string emit_cpu_kernel(const kir::KernelProgram& program, const kir::Kernel& kernel,
                            const CpuOptions& options) {
  const CpuKernelFacts facts(program, kernel, options);
  const CpuPhases phases(facts);
  const CpuCompaction compaction(facts, phases);
  CpuContext cx{facts, phases, compaction, {}};
  return CpuKernelEmitter(cx).emit();
}

}  // namespace cinch::codegen
